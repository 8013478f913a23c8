// An append-only file of JSON lines that survives a kill at any byte: at most the line being written is lost, and it is
// recognised and dropped when the file is opened again.
#pragma once

#include <filesystem>
#include <vector>

#include "base/files.h"
#include "base/json.h"

namespace assay {

struct JournalContents {
  std::vector<Json> lines;
  bool torn = false;      // an incomplete last line was left out
  size_t good_bytes = 0;  // where the complete lines end
};

// Throws DataError, naming the line, when a line before the last is damaged: that is not a crash but corruption.
// A missing file is empty.
JournalContents read_journal(const std::filesystem::path& path);

// One writer at a time. Each append is one write(2).
class Journal {
 public:
  enum class Sync { EveryLine, Never };  // EveryLine survives a power cut, Never only a crash of the program
  // Opens or creates; cuts off a torn last line.
  Journal(std::filesystem::path path, Sync sync);
  void append(const Json& line);
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  Sync sync_;
  FileDescriptor file_;
};

// Cuts a torn last line off a file of lines, whatever the lines hold; for record files that a new attempt appends to.
void drop_torn_line(const std::filesystem::path& path);

}  // namespace assay
