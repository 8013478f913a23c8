// The complete lines that were added to a file since the last look. Knows nothing of what the lines hold.
#pragma once

#include <filesystem>
#include <string>

namespace assay {

class GrowingFile {
 public:
  explicit GrowingFile(std::filesystem::path path) : path_(std::move(path)) {}
  // Whole lines with their newlines, "" when there are none or no file yet. A file that became shorter than what was
  // read already was replaced: it is read from its start, and `restarted()` is true until the next call. Throws
  // DataError when it cannot be read.
  std::string next();
  bool restarted() const { return restarted_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  size_t offset_ = 0;
  bool restarted_ = false;
};

}  // namespace assay
