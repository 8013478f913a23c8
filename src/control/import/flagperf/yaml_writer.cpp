#include "import/flagperf/yaml_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/json.h"
#include "base/text.h"
#include "config/listing.h"

namespace assay {

namespace {

// Plain only where every reader of YAML agrees that it is text; JSON's quoting is YAML's too.
std::string scalar_text(const std::string& text) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("_./-+").find(c) != std::string_view::npos;
  };
  const bool simple = !text.empty() && std::all_of(text.begin(), text.end(), plain);
  if (simple) return yaml_text(Value::string(text));
  std::string quoted = to_line(Json(text));
  // The one control character that JSON leaves as it is.
  for (size_t at = quoted.find('\x7f'); at != std::string::npos; at = quoted.find('\x7f', at)) {
    quoted.replace(at, 1, "\\u007f");
  }
  return quoted;
}

// One line, whatever was in it.
std::string remark_text(std::string_view remark) {
  if (remark.empty()) return "";
  std::string out = "  # " + valid_utf8(remark);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return out;
}

std::string level_blanks(int level) { return std::string(static_cast<size_t>(level) * 2, ' '); }

}  // namespace

std::string flow_yaml(const Value& value) {
  std::vector<std::string> parts;
  if (value.is_list()) {
    for (const Value& item : value.items()) parts.push_back(flow_yaml(item));
    return "[" + join(parts, ", ") + "]";
  }
  if (value.is_map()) {
    if (value.standalone()) parts.push_back("_inherited_: False");
    for (const Value::Entry& entry : value.entries()) {
      parts.push_back(scalar_text(entry.key) + ": " + flow_yaml(entry.value));
    }
    return "{" + join(parts, ", ") + "}";
  }
  if (value.is_string()) return scalar_text(value.as_string());
  return value.is_double() ? python_float(value.as_double()) : yaml_text(value);
}

void YamlWriter::comment(std::string_view text) { text_ += remark_text(text).substr(2) + "\n"; }

void YamlWriter::entry(std::string_view key, const Value& value, int level, std::string_view remark) {
  text_ += fmt::format("{}{}: {}{}\n", level_blanks(level), scalar_text(std::string(key)), flow_yaml(value),
                       remark_text(remark));
}

void YamlWriter::section(std::string_view key, int level) {
  text_ += fmt::format("{}{}:\n", level_blanks(level), scalar_text(std::string(key)));
}

void YamlWriter::item(const Value& value, int level, std::string_view remark) {
  text_ += fmt::format("{}- {}{}\n", level_blanks(level), flow_yaml(value), remark_text(remark));
}

}  // namespace assay
