#include "record/stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/journal.h"
#include "record/json_text.h"
#include "record/members.h"

namespace assay {

namespace fs = std::filesystem;

namespace {

void append_head(std::string& out, Record::Type type, int64_t time_us, int64_t elapsed_us, int rank) {
  out += "{\"type\":\"";
  out += type_name(type);
  out += "\",\"time_us\":";
  append_int(out, time_us);
  out += ",\"elapsed_us\":";
  append_int(out, elapsed_us);
  out += ",\"rank\":";
  append_int(out, rank);
}

template <typename Step>
void append_step(std::string& out, const Step& step) {
  out += ",\"step\":[";
  bool first = true;
  for (const int64_t index : step) {
    if (!first) out += ',';
    first = false;
    append_int(out, index);
  }
  out += ']';
}

}  // namespace

void append_record_line(std::string& out, const Record& record) {
  append_head(out, record.type, record.time_us, record.elapsed_us, record.rank);
  if (!record.name.empty()) {
    out += ",\"name\":";
    append_json_string(out, record.name);
  }
  if (record.step) append_step(out, *record.step);
  if (record.verbosity != Record::Verbosity::Default) {
    out += ",\"verbosity\":";
    append_int(out, static_cast<int64_t>(record.verbosity));
  }
  if (!record.file.empty()) {
    out += ",\"file\":";
    append_json_string(out, record.file);
  }
  if (record.line != 0) {
    out += ",\"line\":";
    append_int(out, record.line);
  }
  out += ",\"data\":";
  append_json(out, record.data);
  if (!record.extra.is_null()) {
    out += ",\"extra\":";
    append_json(out, record.extra);
  }
  out += '}';
}

std::string to_record_line(const Record& record) {
  std::string line;
  append_record_line(line, record);
  return line;
}

Record record_of(std::string_view line, const std::string& where) {
  Json object = parse_json(line, where);
  if (!object.is_object()) throw DataError(where + ": a record must be a JSON object");
  for (const char* key : {"type", "time_us", "data"}) {
    if (!object.contains(key)) throw DataError(fmt::format("{}: a record needs the key '{}'", where, key));
  }
  Record record;
  for (auto& [key, value] : object.items()) set_member(record, key, std::move(value), where);
  return record;
}

RecordWriter::RecordWriter(const fs::path& path, int rank, size_t flush_every)
    : path_(path), rank_(rank), flush_every_(std::max<size_t>(flush_every, 1)) {
  drop_torn_line(path_);
  file_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file_) throw InfrastructureError(fmt::format("{}: cannot open: {}", path_.string(), std::strerror(errno)));
}

RecordWriter::~RecordWriter() {
  try {
    flush();
  } catch (const Error&) {
    // A destructor cannot report it; whoever must know calls flush().
  }
}

void RecordWriter::write(Record record) {
  if (record.time_us == 0) record.time_us = now_us();
  if (record.elapsed_us == 0) record.elapsed_us = static_cast<int64_t>(started_.seconds() * kMicrosPerSecond);
  record.rank = rank_;
  append_record_line(buffer_, record);
  end_line();
  for (const auto& backend : backends_) backend->write(record);
}

void RecordWriter::add_backend(std::unique_ptr<RecordBackend> backend) { backends_.push_back(std::move(backend)); }

void RecordWriter::write_metrics(std::initializer_list<int64_t> step, std::initializer_list<Value> values) {
  if (!backends_.empty()) {
    Record record;
    record.type = Record::Type::Metrics;
    record.step = step;
    for (const Value& value : values) record.data[std::string(value.name)] = json_number(value.value);
    return write(std::move(record));
  }
  append_head(buffer_, Record::Type::Metrics, now_us(), static_cast<int64_t>(started_.seconds() * kMicrosPerSecond),
              rank_);
  append_step(buffer_, step);
  buffer_ += ",\"data\":{";
  bool first = true;
  for (const Value& value : values) {
    if (!first) buffer_ += ',';
    first = false;
    append_json_string(buffer_, value.name);
    buffer_ += ':';
    append_json_float(buffer_, value.value);
  }
  buffer_ += "}}";
  end_line();
}

void RecordWriter::end_line() {
  buffer_ += '\n';
  if (++num_buffered_ >= flush_every_) flush();
}

void RecordWriter::flush() {
  if (buffer_.empty()) return;
  std::string lines;
  lines.swap(buffer_);
  num_buffered_ = 0;
  try {
    write_all(file_.get(), lines, path_);
  } catch (const Error&) {
    drop_torn_line(path_);  // a full disk took part of a line: later records must not continue it
    throw;
  }
  lines.clear();
  lines.swap(buffer_);  // keeps its memory
}

namespace {

// The complete lines of `text` as records; `num_lines` counts them across calls.
std::vector<Record> records_of(std::string_view text, const fs::path& path, size_t* num_lines) {
  std::vector<Record> records;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    ++*num_lines;
    records.push_back(record_of(text.substr(0, end), fmt::format("{}:{}", path.string(), *num_lines)));
    text.remove_prefix(end + 1);
  }
  return records;
}

}  // namespace

std::vector<Record> read_records(const fs::path& path) {
  if (!fs::exists(path)) return {};
  size_t num_lines = 0;
  return records_of(read_file(path), path, &num_lines);
}

std::vector<Record> merge_by_time(std::vector<std::vector<Record>> files) {
  // Each file keeps its own order: a record counts as no earlier than those before it.
  std::vector<std::pair<int64_t, Record*>> order;
  for (std::vector<Record>& file : files) {
    int64_t latest_us = std::numeric_limits<int64_t>::min();
    for (Record& record : file) {
      latest_us = std::max(latest_us, record.time_us);
      order.emplace_back(latest_us, &record);
    }
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Record> merged;
  merged.reserve(order.size());
  for (const auto& [time_us, record] : order) merged.push_back(std::move(*record));
  return merged;
}

std::vector<Record> RecordFollower::next() {
  const std::string lines = file_.next();
  if (file_.restarted()) num_lines_ = 0;
  return records_of(lines, file_.path(), &num_lines_);
}

}  // namespace assay
