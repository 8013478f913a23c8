// NumPy's array files: .npy, and .npz, which is a zip file of them. Little-endian, C order. Files of others: everything
// is checked before it is believed, and nothing is allocated on the word of a header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"

namespace assay {

struct NpyHeader {
  std::string dtype;           // "<u2", "<i4", "|u1"
  size_t item_size = 0;        // bytes
  std::vector<int64_t> shape;  // () has one item
  size_t num_items = 0;
  size_t data_offset = 0;  // where the first item stands
};

// Reads the header of a whole .npy file and checks that the items it promises are there, and no more. Throws DataError
// beginning with `where`.
NpyHeader parse_npy(std::string_view file, const std::string& where);

// A header to write before the items; at least `min_size` bytes long, so that a writer may come back and fill in the
// true shape.
std::string npy_header(const std::string& dtype, const std::vector<int64_t>& shape, size_t min_size = 0);

// NumPy's name of an integer type.
template <typename T>
std::string npy_dtype() {
  return (sizeof(T) == 1 ? "|" : "<") + std::string(T(-1) < T(0) ? "i" : "u") + std::to_string(sizeof(T));
}

// A .npy file mapped into memory.
class NpyFile {
 public:
  explicit NpyFile(const std::filesystem::path& path);
  const NpyHeader& header() const { return header_; }
  // The items; the caller has looked at header().dtype.
  template <typename T>
  std::span<const T> items() const {
    return {reinterpret_cast<const T*>(file_.bytes().data() + header_.data_offset), header_.num_items};
  }

 private:
  MappedFile file_;
  NpyHeader header_;
};

// An array out of a .npz file.
struct NpyArray {
  NpyHeader header;
  std::string file;  // header and items

  // Throws DataError when the items are no integers or too large.
  std::vector<int64_t> integers(const std::string& where) const;
};

class NpzFile {
 public:
  // Reads the table of contents. Throws DataError.
  explicit NpzFile(const std::filesystem::path& path);
  bool has(const std::string& name) const { return entries_.count(name) > 0; }
  // Throws DataError: no such array, damaged (by its checksum), not an array.
  NpyArray read(const std::string& name) const;

 private:
  struct Entry {
    uint64_t offset = 0;  // of its local header
    uint64_t stored_size = 0;
    uint64_t size = 0;
    uint32_t crc = 0;
    uint16_t method = 0;
  };
  void read_entries();
  void read_entry(std::string_view directory, size_t& at);
  [[noreturn]] void damaged(const std::string& what) const;
  uint64_t number(uint64_t at, size_t num_bytes) const;

  std::filesystem::path path_;
  MappedFile file_;
  std::map<std::string, Entry> entries_;  // by name without ".npy"
};

// One array to write.
struct NpzItem {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::string_view bytes;
};

template <typename T>
NpzItem npz_item(const std::string& name, const std::vector<T>& values, std::vector<int64_t> shape = {}) {
  if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
  return {name,
          npy_dtype<T>(),
          std::move(shape),
          {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)}};
}

// Writes the file whole or not at all, not compressed. Throws InfrastructureError.
void write_npz_atomic(const std::filesystem::path& path, const std::vector<NpzItem>& items);

}  // namespace assay
