#include "config/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "config/merge.h"

namespace assay {

namespace {

[[noreturn]] void fail(const Value& value, const std::string& message) {
  throw ConfigError(fmt::format("{}: {}", value.origin().text(), message));
}

std::string known_hint(const std::string& path, const Schema& schema, const Value* declared) {
  const size_t dot = path.rfind('.');
  const std::string section = dot == std::string::npos ? "" : path.substr(0, dot);
  const std::string name = dot == std::string::npos ? path : path.substr(dot + 1);
  std::vector<std::string> siblings = schema.children(section);
  const Value* here = declared ? declared->find(section) : nullptr;
  if (here) {
    for (const std::string& key : keys_of(*here)) siblings.push_back(key);
  }
  if (const auto close = nearest(name, siblings))
    return fmt::format("; did you mean '{}'?", join_path(section, *close));
  const auto elsewhere = schema.paths_named(name);
  if (elsewhere.size() == 1) return fmt::format("; did you mean '{}'?", elsewhere[0]);
  // The nearest of all keys, by their last part.
  std::vector<std::string> names;
  for (const KeySpec& key : schema.keys()) names.push_back(key.path.substr(key.path.rfind('.') + 1));
  if (const auto close = nearest(name, names)) {
    return fmt::format("; did you mean '{}'?", schema.paths_named(*close)[0]);
  }
  std::sort(siblings.begin(), siblings.end());
  siblings.erase(std::unique(siblings.begin(), siblings.end()), siblings.end());
  return siblings.empty() ? "" : fmt::format("; known here: {}", join(siblings, ", "));
}

std::string wanted_text(const KeySpec& key) {
  switch (key.type) {
    case KeyType::Bool: return "true or false";
    case KeyType::Int: return "an integer";
    case KeyType::Double: return "a number";
    case KeyType::String: return "text";
    case KeyType::IntList: return "a list of integers";
    case KeyType::StringList: return "a list of text";
  }
  return "";
}

void check_range(const Value& value, const KeySpec& key) {
  const double number = value.as_double();
  const bool low = key.min && (key.above_min ? number <= *key.min : number < *key.min);
  const bool high = key.max && (key.below_max ? number >= *key.max : number > *key.max);
  if (low || high) fail(value, fmt::format("{} must be {}, found {}", key.path, range_text(key), value.text()));
  if (!std::isfinite(number)) fail(value, fmt::format("{} must be finite, found {}", key.path, value.text()));
}

void check_choice(const Value& value, const KeySpec& key) {
  if (key.choices.empty() ||
      std::find(key.choices.begin(), key.choices.end(), value.as_string()) != key.choices.end()) {
    return;
  }
  fail(value, fmt::format("{} must be {}, found {}{}", key.path, range_text(key), value.text(),
                          did_you_mean(value.as_string(), key.choices)));
}

void check_list(Value& value, const KeySpec& key) {
  for (const Value& item : value.items()) {
    const bool fits = key.type == KeyType::IntList ? item.is_int() : item.is_string();
    if (!fits) fail(value, fmt::format("{} must be {}, found {} in it", key.path, wanted_text(key), item.text()));
    if (item.is_int()) check_range(item, key);
  }
}

void check_key(Value& value, const KeySpec& key) {
  if (value.is_null()) {
    if (!key.nullable) fail(value, fmt::format("{} must be {}, found null", key.path, wanted_text(key)));
    return;
  }
  if (key.no_limit && value.is_int() && value.as_int() == -1) {
    value = Value::null(value.origin());
    return;
  }
  if (key.type == KeyType::Double && value.is_int()) value = Value::real(value.as_double(), value.origin());
  bool fits = false;
  switch (key.type) {
    case KeyType::Bool: fits = value.is_bool(); break;
    case KeyType::Int: fits = value.is_int(); break;
    case KeyType::Double: fits = value.is_double(); break;
    case KeyType::String: fits = value.is_string(); break;
    case KeyType::IntList:
    case KeyType::StringList: fits = value.is_list(); break;
  }
  if (!fits) fail(value, fmt::format("{} must be {}, found {}", key.path, wanted_text(key), value.text()));
  if (value.is_number()) check_range(value, key);
  if (value.is_string()) check_choice(value, key);
  if (value.is_list()) check_list(value, key);
}

// A value in an open section, against the one that the case declares.
void check_declared(Value& value, const std::string& path, const Value& declared, const Schema& schema,
                    const Value& root) {
  if (value.is_map() && declared.is_map()) {
    for (Value::Entry& entry : value.entries()) {
      const std::string inner = join_path(path, entry.key);
      const Value* twin = declared.child(entry.key);
      if (!twin) {
        fail(entry.value, fmt::format("{} is not a key of the case{}", inner, known_hint(inner, schema, &root)));
      }
      check_declared(entry.value, inner, *twin, schema, root);
    }
    return;
  }
  if (declared.is_null() || value.is_null()) return;
  if (declared.is_double() && value.is_int()) value = Value::real(value.as_double(), value.origin());
  const auto refuse = [&](const Value& found) {
    fail(value, fmt::format("{} must be {} as in {}, found {}", path, type_text(declared.type()),
                            declared.origin().text(), found.text()));
  };
  if (value.type() != declared.type()) refuse(value);
  if (!value.is_list() || declared.items().empty()) return;
  for (Value& item : value.items()) {
    if (declared.items()[0].is_double() && item.is_int()) item = Value::real(item.as_double(), item.origin());
    if (item.type() != declared.items()[0].type()) refuse(value);
  }
}

void check_section(Value& node, const SectionSpec& section, const Schema& schema, const Value* declared) {
  for (Value::Entry& entry : node.entries()) {
    const std::string path = join_path(section.path, entry.key);
    Value& value = entry.value;
    if (const KeySpec* key = schema.key(path)) {
      check_key(value, *key);
    } else if (const SectionSpec* inner = schema.section(path)) {
      if (value.is_null() && inner->nullable) continue;
      if (!value.is_map()) fail(value, fmt::format("{} must be a map of keys, found {}", path, value.text()));
      check_section(value, *inner, schema, declared);
    } else if (!section.open) {
      fail(value, fmt::format("{} is not a known key{}", path, known_hint(path, schema, declared)));
    } else if (declared) {
      const Value* here = declared->find(section.path);
      const Value* twin = here ? here->child(entry.key) : nullptr;
      if (!twin) fail(value, fmt::format("{} is not a key of the case{}", path, known_hint(path, schema, declared)));
      check_declared(value, path, *twin, schema, *declared);
    }
  }
}

}  // namespace

void check_layer(Value& layer, const Schema& schema, const Value* declared) {
  check_section(layer, *schema.section(""), schema, declared);
}

namespace {

const ScheduleSpec* schedule_named(std::string_view name) {
  for (const ScheduleSpec& spec : schedules()) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

// Optimizer.lr keys that the given schedule takes; every key while the schedule is unknown.
bool takes(const ScheduleSpec* schedule, const std::string& path) {
  constexpr std::string_view kSection = "Optimizer.lr.";
  if (!schedule || !path.starts_with(kSection)) return true;
  const std::string name = path.substr(kSection.size());
  return name == "name" || name == "learning_rate" || name == "unit" ||
         std::find(schedule->parameters.begin(), schedule->parameters.end(), name) != schedule->parameters.end();
}

const ScheduleSpec* schedule_of(const Value& tree) {
  const Value* name = tree.find("Optimizer.lr.name");
  return name && name->is_string() ? schedule_named(name->as_string()) : nullptr;
}

// A section counts when it and everything above it is there: optional ones only when a layer has them.
bool section_applies(const std::string& path, const Value& given, const Schema& schema) {
  for (size_t dot = 0; dot != std::string::npos;) {
    dot = path.find('.', dot == 0 ? 0 : dot + 1);
    const std::string upper = path.substr(0, dot);
    const SectionSpec* section = schema.section(upper);
    const Value* value = given.find(upper);
    if (section && section->optional && (!value || value->is_null())) return false;
    if (value && value->is_null()) return false;
    if (dot == std::string::npos) break;
  }
  return true;
}

std::string section_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

}  // namespace

Value with_defaults(const Value& given, const Schema& schema) {
  Value tree = Value::map({kLayerDefault, "", 0});
  const ScheduleSpec* schedule = schedule_of(given);
  for (const KeySpec& key : schema.keys()) {
    const std::string section = section_of(key.path);
    if (!section.empty() && !section_applies(section, given, schema)) continue;
    if (!takes(schedule, key.path)) continue;
    if (key.fallback) tree.set_path(key.path, Value::of(*key.fallback, {kLayerDefault, "", 0}));
    // A key without a default still holds its place in the order.
    if (!key.fallback && given.find(key.path)) tree.set_path(key.path, *given.find(key.path));
  }
  for (const SectionSpec& section : schema.sections()) {
    const bool absent = section.nullable && section.optional && !given.find(section.path);
    if (absent && section_applies(section_of(section.path), given, schema)) {
      tree.set_path(section.path, Value::null({kLayerDefault, "", 0}));
    }
  }
  merge_onto(tree, given);
  return tree;
}

void check_complete(const Value& effective, const Schema& schema) {
  const ScheduleSpec* schedule = schedule_of(effective);
  if (const Value* lr = effective.find("Optimizer.lr"); lr && schedule) {
    for (const Value::Entry& entry : lr->entries()) {
      if (takes(schedule, "Optimizer.lr." + entry.key)) continue;
      fail(entry.value, fmt::format("Optimizer.lr.{} is not a parameter of the schedule '{}', set in {}; it takes {}. "
                                    "To drop what a lower layer says, write `_inherited_: False` in lr",
                                    entry.key, schedule->name, lr->child("name")->origin().text(),
                                    join(schedule->parameters, ", ")));
    }
  }
  for (const KeySpec& key : schema.keys()) {
    const std::string section = section_of(key.path);
    if (!key.required || (!section.empty() && !section_applies(section, effective, schema))) continue;
    if (effective.find(key.path)) continue;
    const Value* holder = effective.find(section);
    const bool from_file = holder && !holder->origin().file.empty();
    throw ConfigError(
        fmt::format("{}: {} is missing: {}", (from_file ? *holder : effective).origin().text(), key.path, key.doc));
  }
}

void check_path(const std::string& path, const Schema& schema, const Value& declared, const std::string& where) {
  if (schema.key(path) || (!path.empty() && schema.section(path)) || declared.find(path)) return;
  throw ConfigError(
      fmt::format("{}: '{}' is not a known key or section{}", where, path, known_hint(path, schema, &declared)));
}

}  // namespace assay
