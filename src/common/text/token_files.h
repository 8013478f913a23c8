// A corpus as numbers, in FleetX's two files: PREFIX_ids.npy, all tokens one after the other (uint16 for vocabularies
// below 65,536 tokens, else int32), and PREFIX_idx.npz with `lens`, the tokens of each document, and `docs`, where each
// begins in `lens`. Ours also hold `bytes`, the bytes of each document's text; other readers skip it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "formats/npy.h"

namespace assay {

struct TokenPaths {
  explicit TokenPaths(const std::filesystem::path& prefix)
      : ids(prefix.string() + "_ids.npy"), index(prefix.string() + "_idx.npz") {}
  std::filesystem::path ids, index;
};

// Writes both files, or neither: until finish() they have other names, which the destructor removes.
class TokenWriter {
 public:
  // Throws InfrastructureError when the folder cannot be written to.
  TokenWriter(const std::filesystem::path& prefix, int32_t vocabulary_size);
  ~TokenWriter();
  TokenWriter(const TokenWriter&) = delete;
  TokenWriter& operator=(const TokenWriter&) = delete;

  // One document; `num_bytes` is the size of its text. Documents without tokens are left out.
  void add(std::span<const int32_t> tokens, int64_t num_bytes);
  // Puts the files in place of any earlier ones. Throws InvalidError when there is no document.
  void finish();

  int64_t num_tokens() const { return num_tokens_; }
  int64_t num_documents() const { return static_cast<int64_t>(lens_.size()); }
  bool narrow() const { return narrow_; }  // uint16

 private:
  void flush();

  TokenPaths paths_;
  std::filesystem::path temporary_;
  FileDescriptor file_;
  int32_t vocabulary_size_;
  bool narrow_;
  bool finished_ = false;
  std::string buffer_;
  std::vector<int32_t> lens_;
  std::vector<int64_t> bytes_;
  int64_t num_tokens_ = 0;
};

// Both files for reading; the tokens stay in the file.
class TokenFile {
 public:
  // Throws DataError: missing, damaged, or files that do not belong together.
  explicit TokenFile(const std::filesystem::path& prefix);

  int64_t num_tokens() const { return static_cast<int64_t>(ids_.header().num_items); }
  int64_t num_documents() const { return static_cast<int64_t>(begins_.size()) - 1; }
  int64_t begin_of(int64_t document) const { return begins_[static_cast<size_t>(document)]; }
  int64_t length_of(int64_t document) const { return begin_of(document + 1) - begin_of(document); }
  // The bytes of the documents' text; nothing when the file does not say.
  const std::optional<std::vector<int64_t>>& num_bytes() const { return num_bytes_; }
  // Copies `count` tokens from place `begin` on.
  void copy(int64_t begin, int64_t count, int64_t* out) const;
  int64_t max_token() const;  // reads them all

  const TokenPaths& paths() const { return paths_; }
  std::string documents_hash() const { return documents_hash_; }  // SHA-256 of the documents' lengths

 private:
  TokenPaths paths_;
  NpyFile ids_;
  bool narrow_ = false;
  std::vector<int64_t> begins_;  // one more than documents
  std::optional<std::vector<int64_t>> num_bytes_;
  std::string documents_hash_;
};

}  // namespace assay
