// How records are found in the log of a program that writes none itself: one regular expression and what its groups
// mean. It is compiled when it is read, so that a mistake shows when a plan is made and not when a training has ended.
// Knows lines of text; knows no log file and no plan.
//
// As JSON: {"match": EXPRESSION, "names": [NAME, ...], "kind": "metrics" | "result"}: one name for every group of the
// expression (ECMAScript). In metrics the names "step" and "epoch" place the record, all others are metrics. A result
// is what the run achieved, with the keys of record/keys.h; the last line that says a thing counts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace assay {

// What is wrong with a pattern, and which of its keys is to blame: "match", "names", "kind", one that is not known, or
// "" when it is the pattern as a whole.
class PatternError : public ConfigError {
 public:
  PatternError(std::string key, const std::string& message) : ConfigError(message), key_(std::move(key)) {}
  const std::string& key() const { return key_; }

 private:
  std::string key_;
};

class LogPattern {
 public:
  enum class Kind { Metrics, Result };

  // Plans of earlier versions may have other keys, which never meant anything.
  enum class OtherKeys { Refuse, Ignore };
  // Throws PatternError: not an object, an unknown key, an expression that does not compile, names that do not fit its
  // groups.
  static LogPattern parse(const Json& json, OtherKeys other_keys = OtherKeys::Refuse);

  const std::vector<std::string>& names() const { return names_; }
  Kind kind() const { return kind_; }
  // What the groups hold where the line matches, one text per name. Lines that are too long for the expression engine
  // never match.
  std::optional<std::vector<std::string>> groups(const std::string& line) const;
  Json to_json() const;

  bool operator==(const LogPattern& other) const { return to_json() == other.to_json(); }

 private:
  struct Expression;
  LogPattern() = default;

  std::string match_;
  std::vector<std::string> names_;
  Kind kind_ = Kind::Metrics;
  std::shared_ptr<const Expression> expression_;
};

}  // namespace assay
