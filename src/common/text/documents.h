// Documents out of files: a line of a .jsonl file, {"text": "...", "label": 0}, or a whole .txt file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mapped_file.h"

namespace assay {

struct Document {
  std::string text;
  std::optional<int64_t> label;
  size_t line = 0;  // in its .jsonl file; 0 for a .txt file
};

class DocumentReader {
 public:
  // Throws DataError: no such file, another extension.
  explicit DocumentReader(const std::filesystem::path& path);
  // The next document; nothing at the end. Empty lines are skipped. Throws DataError naming file and line: no JSON
  // object, no text, a label that is no number from 0.
  std::optional<Document> next();
  size_t num_bytes_read() const { return at_; }
  size_t num_bytes() const { return file_.bytes().size(); }

 private:
  std::filesystem::path path_;
  MappedFile file_;
  bool is_lines_ = false;
  size_t at_ = 0;
  size_t line_ = 0;
};

}  // namespace assay
