#include "record/log_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "base/text.h"

namespace assay {

namespace {

constexpr size_t kLongestLine = 4096;  // the expression engine is recursive
constexpr size_t kMostGroups = 32;

const std::vector<std::string>& pattern_keys() {
  static const std::vector<std::string> kKeys = {"match", "names", "kind"};
  return kKeys;
}

[[noreturn]] void wrong_pattern(const Json& json, const std::string& key, const std::string& what) {
  throw PatternError(key, fmt::format("pattern {}: {}", to_line(json), what));
}

void check_pattern_keys(const Json& json) {
  for (const auto& [key, value] : json.items()) {
    const std::vector<std::string>& known = pattern_keys();
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    wrong_pattern(json, key, fmt::format("has no '{}'{}; it has {}", key, did_you_mean(key, known), join(known, ", ")));
  }
}

std::vector<std::string> pattern_names(const Json& json) {
  if (!json.contains("names"))
    wrong_pattern(json, "", "has match: an expression, names: a list of names; names is missing");
  const Json& names = json.at("names");
  const bool fits = names.is_array() && std::all_of(names.begin(), names.end(), [](const Json& name) {
                      return name.is_string() && !name.get<std::string>().empty();
                    });
  if (!fits) wrong_pattern(json, "names", "names is a list of names, one for every group of the expression");
  if (names.empty() || names.size() > kMostGroups) {
    wrong_pattern(json, "names", fmt::format("names at least one group, at most {}", kMostGroups));
  }
  return names.get<std::vector<std::string>>();
}

std::string pattern_match(const Json& json) {
  if (!json.contains("match"))
    wrong_pattern(json, "", "has match: an expression, names: a list of names; match is missing");
  if (!json.at("match").is_string()) wrong_pattern(json, "match", "match is a regular expression as text");
  return json.at("match").get<std::string>();
}

LogPattern::Kind pattern_kind(const Json& json) {
  const Json kind = json.value("kind", Json("metrics"));
  if (kind != "metrics" && kind != "result") wrong_pattern(json, "kind", "kind is metrics or result");
  return kind == "result" ? LogPattern::Kind::Result : LogPattern::Kind::Metrics;
}

}  // namespace

struct LogPattern::Expression {
  std::regex regex;
};

LogPattern LogPattern::parse(const Json& json, OtherKeys other_keys) {
  if (!json.is_object()) wrong_pattern(json, "", "is not a map; it has match, names and perhaps kind");
  if (other_keys == OtherKeys::Refuse) check_pattern_keys(json);
  LogPattern pattern;
  pattern.match_ = pattern_match(json);
  pattern.names_ = pattern_names(json);
  pattern.kind_ = pattern_kind(json);
  try {
    pattern.expression_ = std::make_shared<const Expression>(
        Expression{std::regex(pattern.match_, std::regex::ECMAScript | std::regex::optimize)});
  } catch (const std::regex_error& error) {
    wrong_pattern(json, "match", fmt::format("is not an expression: {}", error.what()));
  }
  const size_t num_groups = pattern.expression_->regex.mark_count();
  if (num_groups != pattern.names_.size()) {
    wrong_pattern(json, "names", fmt::format("has {} groups and {} names", num_groups, pattern.names_.size()));
  }
  return pattern;
}

std::optional<std::vector<std::string>> LogPattern::groups(const std::string& line) const {
  std::smatch found;
  if (line.size() > kLongestLine || !std::regex_search(line, found, expression_->regex)) return std::nullopt;
  std::vector<std::string> groups;
  for (size_t i = 1; i <= names_.size(); ++i) groups.push_back(found[i].str());
  return groups;
}

Json LogPattern::to_json() const {
  Json out = {{"match", match_}, {"names", names_}};
  if (kind_ == Kind::Result) out["kind"] = "result";
  return out;
}

}  // namespace assay
