#include "execute/log_extract.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "layout/run_layout.h"
#include "record/keys.h"
#include "record/log_file.h"
#include "record/stream.h"

namespace assay {

namespace {

// What the patterns find in a log, line by line.
class PatternReader {
 public:
  explicit PatternReader(const std::vector<LogPattern>& patterns) : patterns_(patterns) {}

  void read_line(const std::string& line) {
    for (const LogPattern& pattern : patterns_) {
      if (const auto groups = pattern.groups(line)) take_groups(pattern, *groups);
    }
  }

  std::vector<Record> take() {
    if (!result_.empty()) {
      Record record;
      record.type = Record::Type::Result;
      record.data = result_;
      records_.push_back(std::move(record));
    }
    return std::move(records_);
  }

 private:
  void take_groups(const LogPattern& pattern, const std::vector<std::string>& groups) {
    Json values = Json::object();
    for (size_t i = 0; i < groups.size(); ++i) {
      const std::string& name = pattern.names()[i];
      const auto number = parse_double(trim(groups[i]));
      if (number && std::isfinite(*number)) {
        values[name] = *number;
      } else {
        note(fmt::format("'{}' is not a number: {} is left out", groups[i], name));
      }
    }
    if (pattern.kind() == LogPattern::Kind::Result) {
      result_.update(values);
    } else {
      add_metrics(std::move(values));
    }
  }

  void add_metrics(Json values) {
    Record record;
    record.type = Record::Type::Metrics;
    std::vector<int64_t> position;
    for (const char* name : {keys::kEpoch, keys::kStep}) {
      if (!values.contains(name)) continue;
      position.push_back(static_cast<int64_t>(values.at(name).get<double>()));
      values.erase(name);
      if (name == keys::kStep) values[keys::kGlobalStep] = position.back();
    }
    if (!position.empty()) record.step = std::move(position);
    record.data = std::move(values);
    records_.push_back(std::move(record));
  }

  void note(const std::string& text) {
    Record record;
    record.type = Record::Type::Message;
    record.data = {{keys::kText, valid_utf8(text)}};
    records_.push_back(std::move(record));
  }

  const std::vector<LogPattern>& patterns_;
  std::vector<Record> records_;
  Json result_ = Json::object();
};

std::vector<Record> records_in_log(const std::string& text, const std::string& where,
                                   const std::vector<LogPattern>& patterns) {
  LogContents contents = parse_log(
      text, where, {.dialect = "", .unknown = ReadOptions::Unknown::Skip, .damaged = ReadOptions::Damaged::Keep});
  std::vector<Record> records = std::move(contents.records);
  if (patterns.empty()) return records;
  PatternReader reader(patterns);
  for (const std::string& line : split(text, '\n')) reader.read_line(valid_utf8(line));
  for (Record& record : reader.take()) records.push_back(std::move(record));
  return records;
}

}  // namespace

std::string extracted_log() { return layout::rank_log(0); }

void discard_extracted(const std::filesystem::path& step_folder) {
  const auto mark = step_folder / layout::kExtractMark;
  if (!std::filesystem::exists(mark)) return;
  // In this order: a mark alone does no harm, and records without one would be taken for the program's.
  std::filesystem::remove(step_folder / layout::records_file(0));
  std::filesystem::remove(mark);
}

size_t extract_records(const std::filesystem::path& step_folder, const std::vector<LogPattern>& patterns,
                       int64_t log_from) {
  const auto target = step_folder / layout::records_file(0);
  const auto mark = step_folder / layout::kExtractMark;
  if (std::filesystem::exists(target) && !std::filesystem::exists(mark)) return read_records(target).size();
  const auto log = step_folder / extracted_log();
  if (!std::filesystem::exists(log)) return 0;
  std::string text = read_file(log);
  text.erase(0, static_cast<size_t>(std::max<int64_t>(0, log_from)));
  const std::vector<Record> records = records_in_log(text, log.string(), patterns);
  if (records.empty()) return 0;
  std::string lines;
  for (const Record& record : records) {
    append_record_line(lines, record);
    lines += '\n';
  }
  write_file_atomic(mark, to_pretty({{"log", extracted_log()}, {"from", log_from}}) + "\n");
  write_file_atomic(target, lines);
  return records.size();
}

}  // namespace assay
