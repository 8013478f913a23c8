#include "execute/harvest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "launch/launcher.h"
#include "record/keys.h"
#include "record/log_file.h"
#include "record/stream.h"

namespace assay {

namespace {

constexpr size_t kLongestLine = 4096;  // for patterns: their engine is recursive
constexpr size_t kMostGroups = 32;
constexpr char kHarvestMark[] = "harvest.json";  // beside records that are ours, and not the program's

struct Pattern {
  std::regex match;
  std::vector<std::string> names;
  bool is_result = false;
};

Pattern pattern_of(const Json& json) {
  const auto wrong = [&](const std::string& what) {
    throw ConfigError(fmt::format("pattern {}: {}", to_line(json), what));
  };
  Pattern pattern;
  try {
    pattern.names = json.at("names").get<std::vector<std::string>>();
    pattern.match = std::regex(json.at("match").get<std::string>(), std::regex::ECMAScript | std::regex::optimize);
    const std::string kind = json.value("kind", "metrics");
    pattern.is_result = kind == "result";
    if (kind != "result" && kind != "metrics") wrong("kind is metrics or result");
  } catch (const Json::exception&) {
    wrong("has match: an expression, names: a list of names, and perhaps kind");
  } catch (const std::regex_error& error) {
    wrong(fmt::format("is not an expression: {}", error.what()));
  }
  if (pattern.names.empty() || pattern.names.size() > kMostGroups) wrong("names at least one group, at most 32");
  if (pattern.match.mark_count() != pattern.names.size()) {
    wrong(fmt::format("has {} groups and {} names", pattern.match.mark_count(), pattern.names.size()));
  }
  return pattern;
}

// What a program says of its result, line by line.
class Harvest {
 public:
  explicit Harvest(const std::vector<Json>& patterns) {
    for (const Json& json : patterns) patterns_.push_back(pattern_of(json));
  }

  void read_line(const std::string& line) {
    if (line.size() > kLongestLine) return;
    for (const Pattern& pattern : patterns_) {
      std::smatch found;
      if (!std::regex_search(line, found, pattern.match)) continue;
      Json values = Json::object();
      for (size_t i = 0; i < pattern.names.size(); ++i) {
        const auto number = parse_double(trim(found[i + 1].str()));
        if (number && std::isfinite(*number)) {
          values[pattern.names[i]] = *number;
        } else {
          note(fmt::format("'{}' is not a number: {} is left out", found[i + 1].str(), pattern.names[i]));
        }
      }
      if (pattern.is_result) {
        result_.update(values);
      } else {
        add_metrics(values);
      }
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
  void add_metrics(Json values) {
    Record record;
    record.type = Record::Type::Metrics;
    record.step.emplace();
    for (const char* place : {"epoch", "step"}) {
      if (!values.contains(place)) continue;
      record.step->push_back(static_cast<int64_t>(values.at(place).get<double>()));
      if (std::string_view(place) == "step") values[keys::kGlobalStep] = record.step->back();
      values.erase(place);
    }
    if (record.step->empty()) record.step.reset();
    record.data = std::move(values);
    records_.push_back(std::move(record));
  }

  void note(const std::string& text) {
    Record record;
    record.type = Record::Type::Message;
    record.data = {{"text", valid_utf8(text)}};
    records_.push_back(std::move(record));
  }

  std::vector<Pattern> patterns_;
  std::vector<Record> records_;
  Json result_ = Json::object();
};

}  // namespace

std::string harvested_log() { return "rank0.log"; }

void check_patterns(const std::vector<Json>& patterns) {
  for (const Json& json : patterns) pattern_of(json);
}

void discard_harvest(const std::filesystem::path& step_folder) {
  const auto mark = step_folder / kHarvestMark;
  if (!std::filesystem::exists(mark)) return;
  // In this order: a mark alone does no harm, and records without one would be taken for the program's.
  std::filesystem::remove(step_folder / records_file_name(0));
  std::filesystem::remove(mark);
}

size_t harvest_records(const std::filesystem::path& step_folder, const std::vector<Json>& patterns, int64_t log_from) {
  const auto target = step_folder / records_file_name(0);
  const auto mark = step_folder / kHarvestMark;
  if (std::filesystem::exists(target) && !std::filesystem::exists(mark)) return read_records(target).size();
  const auto log = step_folder / harvested_log();
  if (!std::filesystem::exists(log)) return 0;
  std::string said = read_file(log);
  said.erase(0, static_cast<size_t>(std::max<int64_t>(0, log_from)));
  LogContents contents =
      parse_log(said, log.string(),
                {.dialect = "", .unknown = ReadOptions::Unknown::Skip, .damaged = ReadOptions::Damaged::Keep});
  std::vector<Record> records = std::move(contents.records);
  Harvest harvest(patterns);
  if (!patterns.empty()) {
    for (const std::string& line : split(said, '\n')) harvest.read_line(valid_utf8(line));
  }
  for (Record& record : harvest.take()) records.push_back(std::move(record));
  if (records.empty()) return 0;
  std::string text;
  for (const Record& record : records) {
    append_record_line(text, record);
    text += '\n';
  }
  write_file_atomic(mark, to_pretty({{"log", harvested_log()}, {"from", log_from}}) + "\n");
  write_file_atomic(target, text);
  return records.size();
}

}  // namespace assay
