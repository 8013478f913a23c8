#include "record/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "record/log_time.h"
#include "record/python_text.h"

namespace assay {

std::string printable(std::string_view input) {
  const std::string text = valid_utf8(input);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0x1B && i + 1 < text.size() && text[i + 1] == '[') {  // ESC [ parameters letter
      i += 2;
      while (i < text.size() && !(text[i] >= '@' && text[i] <= '~')) ++i;
    } else if (byte == '\t' || byte == '\n' || byte == '\r') {
      out += ' ';
    } else if (byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
      ++i;  // the control characters from U+0080 on
    } else if (byte >= 0x20 && byte != 0x7F) {
      out += text[i];
    }
  }
  return out;
}

namespace {

constexpr int kTimeWidth = 26;
constexpr int kRankWidth = 4;
constexpr int kTypeWidth = 11;
constexpr int kStepWidth = 9;

std::string columns(std::string_view time, std::string_view rank, std::string_view type, std::string_view step,
                    std::string_view content) {
  std::string line = fmt::format("{:<{}}  {:>{}}  {:<{}}  {:<{}}  {}", time, kTimeWidth, rank, kRankWidth, type,
                                 kTypeWidth, step, kStepWidth, content);
  line.resize(line.find_last_not_of(' ') + 1);
  return line;
}

std::string step_text(const Record& record) {
  if (!record.step) return "";
  if (record.step->empty()) return "run";
  std::vector<std::string> parts;
  for (const int64_t index : *record.step) parts.push_back(std::to_string(index));
  return join(parts, "/");
}

std::string number_text(const Json& value) {
  if (value.is_number_integer()) return value.dump();
  const double number = number_of(value);
  if (!std::isfinite(number)) return python_float(number);
  return fmt::format("{:.6g}", number);  // a person reads; --json has every digit
}

}  // namespace

std::string RecordLines::header() { return columns("time (UTC)", "rank", "type", "step", "content"); }

bool RecordLines::wanted(const Record& record) const {
  if (metrics_.empty()) return true;
  return record.type == Record::Type::Metrics && record.data.is_object() &&
         std::any_of(metrics_.begin(), metrics_.end(), [&](const auto& name) { return record.data.contains(name); });
}

std::string RecordLines::value_text(const std::string& key, const Json& value) const {
  const auto unit = units_.find(key);
  const std::string text = is_number(value) ? number_text(value) : python_str(value);
  return fmt::format("{}={}{}{}", key, text, unit == units_.end() || unit->second.empty() ? "" : " ",
                     unit == units_.end() ? "" : unit->second);
}

std::string RecordLines::content(const Record& record) const {
  std::vector<std::string> parts;
  if (!record.name.empty()) parts.push_back(record.name);
  if (!record.data.is_object()) {
    parts.push_back(python_str(record.data));
  } else if (record.type == Record::Type::Message && record.data.size() == 1 && record.data.contains("text")) {
    parts.push_back(python_str(record.data["text"]));
  } else {
    for (const auto& [key, value] : record.data.items()) {
      const bool shown = metrics_.empty() || std::find(metrics_.begin(), metrics_.end(), key) != metrics_.end();
      if (shown) parts.push_back(value_text(key, value));
    }
  }
  return printable(join(parts, "  "));
}

std::string RecordLines::line(const Record& record) {
  if (record.type == Record::Type::Metadata && record.data.is_object() && record.data.contains("unit") &&
      record.data["unit"].is_string()) {
    units_[record.name] = record.data["unit"].get<std::string>();
  }
  if (!wanted(record)) return "";
  return columns(record.time_us == 0 ? "-" : datetime_text(record.time_us, Zone::Utc), std::to_string(record.rank),
                 type_name(record.type), step_text(record), content(record));
}

}  // namespace assay
