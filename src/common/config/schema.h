// Which keys a configuration may have: type, default, range and meaning of each. Native cases follow it throughout; in
// a case for another framework only the head (model, data, target, ...) does, since the rest belongs to that program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "config/value.h"

namespace assay {

enum class KeyType { Bool, Int, Double, String, IntList, StringList };

struct KeySpec {
  std::string path;  // "Engine.max_steps"
  KeyType type = KeyType::String;
  std::string doc;
  // Absent: the key has no default. A key without one that is not given is absent from the effective configuration,
  // unless it is required.
  std::optional<Json> fallback = std::nullopt;
  bool nullable = false;
  bool required = false;  // whenever its section is there
  std::vector<std::string> choices = {};
  std::optional<double> min = std::nullopt;
  std::optional<double> max = std::nullopt;
  bool above_min = false;    // min itself is excluded
  bool below_max = false;    // max itself is excluded
  bool no_limit = false;     // -1 is accepted for null: no limit
  bool is_location = false;  // says where something lies, not what is measured: always mutable, not part of the hash
  bool is_path = false;      // a file or folder: a relative one on the command line is resolved where the user stands
};

struct SectionSpec {
  std::string path;  // "Engine.save_load"
  std::string doc;
  bool optional = false;  // its defaults apply only when a layer mentions it
  bool nullable = false;
  bool open = false;  // the case may declare keys of its own here; other layers may only use those
};

class Schema {
 public:
  // The keys of native cases.
  static const Schema& native();
  // Only the head.
  static const Schema& foreign();

  Schema(std::vector<SectionSpec> sections, std::vector<KeySpec> keys);
  const std::vector<SectionSpec>& sections() const { return sections_; }
  const std::vector<KeySpec>& keys() const { return keys_; }
  const KeySpec* key(std::string_view path) const;
  const SectionSpec* section(std::string_view path) const;  // "" is the root
  std::vector<std::string> children(std::string_view section) const;
  // Full paths that end in this name: for a key in the wrong section.
  std::vector<std::string> paths_named(std::string_view name) const;

 private:
  std::vector<SectionSpec> sections_;
  std::vector<KeySpec> keys_;
};

// The first part of a path that belongs to the head of a case file rather than to its `config`.
bool is_head_key(std::string_view first_part);

// A learning-rate schedule and the parameters it takes besides those of every schedule.
struct ScheduleSpec {
  std::string name;
  std::vector<std::string> parameters;
};
const std::vector<ScheduleSpec>& schedules();

// "integer", "list of text", with "or null".
std::string type_text(const KeySpec& key);
// "at least 1", "one of step, epoch", "" for no limits.
std::string range_text(const KeySpec& key);

}  // namespace assay
