// Files of texts turned into the two files of tokens (text/token_files.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace assay {

struct Encoding {
  std::vector<std::filesystem::path> files;  // .jsonl and .txt, see documents.h
  std::filesystem::path prefix;              // of PREFIX_ids.npy and PREFIX_idx.npz
  bool end_token = true;                     // after each document, when the tokenizer has one
  // Told how far the work is; may throw to end it.
  std::function<void(std::string_view stage, int64_t done, int64_t total, std::string_view unit)> report = nullptr;
};
struct EncodedFiles {
  int64_t num_documents = 0;
  int64_t num_tokens = 0;
  int64_t num_bytes = 0;  // of the documents' text
  bool narrow = false;    // uint16
};

// Writes both files or neither. Throws DataError (a file of texts) or InvalidError (no texts in them).
EncodedFiles encode_files(const Tokenizer& tokenizer, const Encoding& encoding);

}  // namespace assay
