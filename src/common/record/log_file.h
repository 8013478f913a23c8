// Log files as people have them: lines of one dialect or of several, between lines of none.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "record/dialect.h"
#include "record/growing_file.h"

namespace assay {

struct ReadOptions {
  enum class Unknown {
    Keep,  // as Message records, {"text": line}
    Skip,
  };
  enum class Damaged {
    Fail,  // DataError with file and line
    Keep,  // as unknown lines
  };
  std::string dialect;  // only lines of this one; "": each line by its own mark
  Unknown unknown = Unknown::Keep;
  Damaged damaged = Damaged::Fail;
};

struct LogContents {
  std::vector<Record> records;
  std::map<std::string, size_t> num_lines;  // dialect -> lines of it
  size_t num_unknown = 0;                   // lines of no dialect; blank lines do not count
  size_t num_damaged = 0;                   // lines with a mark that could not be read, when they were kept
  bool torn = false;                        // the last line was cut off, and was left out
  std::string main_dialect() const;         // the one with the most lines; "" when there is none
};

// Reads lines one after the other; for files that grow.
class LogReader {
 public:
  // `where` names the file in errors. Throws UsageError for an unknown dialect.
  LogReader(std::string where, ReadOptions options);
  void read_line(std::string_view line, LogContents& contents);
  // A line without its newline at the end of a file: read if it is whole, otherwise torn.
  void read_last_line(std::string_view line, LogContents& contents);

 private:
  bool read_known(std::string_view line, LogContents& contents);

  struct Source {
    const Dialect* dialect;
    std::unique_ptr<LineReader> reader;
  };
  std::string where_;
  ReadOptions options_;
  std::vector<Source> sources_;
  size_t line_number_ = 0;
};

LogContents parse_log(std::string_view text, const std::string& where, const ReadOptions& options = {});
LogContents read_log(const std::filesystem::path& path, const ReadOptions& options = {});  // throws DataError

// Follows a growing log: each call returns what its new complete lines say.
class LogFollower {
 public:
  LogFollower(const std::filesystem::path& path, ReadOptions options)
      : file_(path), options_(options), reader_(path.string(), std::move(options)) {}
  LogContents next();

 private:
  GrowingFile file_;
  ReadOptions options_;
  LogReader reader_;
};

// The lines of a dialect. Throws UsageError when it can only be read.
std::string to_log(const std::vector<Record>& records, const Dialect& dialect);

}  // namespace assay
