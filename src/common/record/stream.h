// Our own record files: one JSON object a line (docs/reference/formats.md). A kill loses at most the line being
// written.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/time.h"
#include "record/growing_file.h"
#include "record/record.h"

namespace assay {

// One line, without its newline; and the way back. `where` names file and line in errors (DataError).
std::string to_record_line(const Record& record);
void append_record_line(std::string& out, const Record& record);
Record record_of(std::string_view line, const std::string& where);

// One more place where a writer's records go, such as TensorBoard's files.
class RecordBackend {
 public:
  virtual ~RecordBackend() = default;
  virtual void write(const Record& record) = 0;  // throws InfrastructureError
};

// Appends to a file, one write(2) a flush. One writer a file and rank. Not thread-safe.
class RecordWriter {
 public:
  // Opens for append; drops a torn last line of an earlier, killed attempt. With `flush_every` 1 (the default) each
  // record reaches the kernel at once; larger values are for bulk conversion. Throws InfrastructureError.
  explicit RecordWriter(const std::filesystem::path& path, int rank = 0, size_t flush_every = 1);
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;
  // Fills in time and elapsed time (where 0), and the rank of this writer. Throws InfrastructureError when the file
  // cannot take it (a full disk).
  void write(Record record);
  void flush();
  // From now on every record goes there too.
  void add_backend(std::unique_ptr<RecordBackend> backend);

  // A Metrics record of plain numbers, without building a Record: for every step of a training loop.
  struct Value {
    std::string_view name;
    double value;
  };
  void write_metrics(std::initializer_list<int64_t> step, std::initializer_list<Value> values);

 private:
  void end_line();

  std::filesystem::path path_;
  int rank_;
  size_t flush_every_;
  FileDescriptor file_;
  Stopwatch started_;
  std::string buffer_;
  size_t num_buffered_ = 0;
  std::vector<std::unique_ptr<RecordBackend>> backends_;
};

// All complete records of a file; a torn last line is left out, damage before it is a DataError. Missing file: empty.
std::vector<Record> read_records(const std::filesystem::path& path);
// Several ranks' files as one sequence, by time, stable. Each file keeps its own order, even where its clock went back.
std::vector<Record> merge_by_time(std::vector<std::vector<Record>> files);

// Follows a growing file: each call returns the complete records added since the last. A file that became shorter than
// what was read already was replaced, and is read from its start.
class RecordFollower {
 public:
  explicit RecordFollower(std::filesystem::path path) : file_(std::move(path)) {}
  std::vector<Record> next();

 private:
  GrowingFile file_;
  size_t num_lines_ = 0;
};

}  // namespace assay
