// The safetensors file format: 8 bytes of header length, a JSON header, raw little-endian tensors. Python's
// `safetensors` and everything built on it read these files. Knows bytes and shapes, not libtorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace assay {

struct TensorView {
  std::string name;
  std::string dtype;  // "F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL"
  std::vector<int64_t> shape;
  const std::byte* bytes = nullptr;  // borrowed; valid as long as its owner
  size_t num_bytes = 0;
};

size_t dtype_size(const std::string& dtype);  // throws DataError for an unknown one

// A file mapped into memory. Everything in it is checked on opening: lengths, offsets, overlaps, shapes.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);  // throws DataError naming file and tensor
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::vector<TensorView>& tensors() const { return tensors_; }  // in file order
  const TensorView& at(const std::string& name) const;                 // throws DataError with the nearest name
  bool has(const std::string& name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  void parse(const std::filesystem::path& path);

  void* map_ = nullptr;
  size_t size_ = 0;
  std::vector<TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
  std::filesystem::path path_;
};

// Written beside the target, synced, renamed. Throws InfrastructureError. Returns the SHA-256 of the file.
std::string write_safetensors(const std::filesystem::path& path, const std::vector<TensorView>& tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace assay
