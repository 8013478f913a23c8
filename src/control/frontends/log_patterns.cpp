#include "frontends/log_patterns.h"

#include <fmt/format.h>

#include "base/error.h"

namespace assay {

namespace {

[[noreturn]] void wrong_at(const Value& value, const std::string& path, const std::string& what) {
  throw ConfigError(fmt::format("{}: config.{}: {}", value.origin().exact_text(), path, what));
}

}  // namespace

std::vector<LogPattern> read_log_patterns(const Value& list) {
  if (!list.is_list()) {
    wrong_at(list, "patterns",
             fmt::format("is a list of patterns, each with match, names and perhaps kind, found {}", list.text()));
  }
  std::vector<LogPattern> patterns;
  for (size_t i = 0; i < list.items().size(); ++i) {
    const Value& item = list.items()[i];
    try {
      patterns.push_back(LogPattern::parse(item.to_json()));
    } catch (const PatternError& error) {
      const Value* key = item.is_map() && !error.key().empty() ? item.child(error.key()) : nullptr;
      wrong_at(key ? *key : item, fmt::format("patterns.{}{}", i, key ? "." + error.key() : ""), error.what());
    }
  }
  return patterns;
}

}  // namespace assay
