#include "record/log_file.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace assay {

std::string LogContents::main_dialect() const {
  std::string best;
  size_t most = 0;
  for (const auto& [dialect, count] : num_lines) {
    if (count > most) {
      most = count;
      best = dialect;
    }
  }
  return best;
}

LogReader::LogReader(std::string where, ReadOptions options) : where_(std::move(where)), options_(std::move(options)) {
  if (!options_.dialect.empty()) {
    const Dialect& only = dialect_named(options_.dialect);
    sources_.push_back({&only, only.reader()});
    return;
  }
  for (const Dialect* dialect : dialects()) sources_.push_back({dialect, dialect->reader()});
}

bool LogReader::read_known(std::string_view line, LogContents& contents) {
  for (Source& source : sources_) {
    if (!source.dialect->recognises(line)) continue;
    source.reader->read(line, fmt::format("{}:{}", where_, line_number_), contents.records);
    ++contents.num_lines[std::string(source.dialect->name())];
    return true;
  }
  return false;
}

void LogReader::read_line(std::string_view line, LogContents& contents) {
  ++line_number_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (trim(line).empty()) return;
  try {
    if (read_known(line, contents)) return;
    ++contents.num_unknown;
  } catch (const DataError& error) {
    if (options_.damaged == ReadOptions::Damaged::Fail) throw;
    ++contents.num_damaged;
  }
  if (options_.unknown == ReadOptions::Unknown::Skip) return;
  Record message;
  message.data = {{"text", valid_utf8(line)}};
  contents.records.push_back(std::move(message));
}

void LogReader::read_last_line(std::string_view line, LogContents& contents) {
  const ReadOptions::Damaged damaged = options_.damaged;
  options_.damaged = ReadOptions::Damaged::Fail;
  try {
    read_line(line, contents);
  } catch (const DataError&) {
    contents.torn = true;
  }
  options_.damaged = damaged;
}

LogContents parse_log(std::string_view text, const std::string& where, const ReadOptions& options) {
  LogContents contents;
  LogReader reader(where, options);
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      reader.read_last_line(text, contents);
      break;
    }
    reader.read_line(text.substr(0, end), contents);
    text.remove_prefix(end + 1);
  }
  return contents;
}

LogContents read_log(const std::filesystem::path& path, const ReadOptions& options) {
  return parse_log(read_file(path), path.string(), options);
}

LogContents LogFollower::next() {
  const std::string lines = file_.next();
  if (file_.restarted()) reader_ = LogReader(file_.path().string(), options_);
  LogContents contents;
  std::string_view rest = lines;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    reader_.read_line(rest.substr(0, end), contents);
    rest.remove_prefix(end + 1);
  }
  return contents;
}

std::string to_log(const std::vector<Record>& records, const Dialect& dialect) {
  const std::unique_ptr<LineWriter> writer = dialect.writer();
  if (!writer) throw UsageError(fmt::format("the dialect '{}' can only be read", dialect.name()));
  std::string out;
  for (const Record& record : records) writer->write(record, out);
  return out;
}

}  // namespace assay
