#include "config/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace assay {

namespace {

std::string_view parent_of(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
}

std::string_view name_of(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

std::string number_text(double value) {
  std::string text = python_float(value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

}  // namespace

Schema::Schema(std::vector<SectionSpec> sections, std::vector<KeySpec> keys)
    : sections_(std::move(sections)), keys_(std::move(keys)) {}

const KeySpec* Schema::key(std::string_view path) const {
  for (const KeySpec& key : keys_) {
    if (key.path == path) return &key;
  }
  return nullptr;
}

const SectionSpec* Schema::section(std::string_view path) const {
  for (const SectionSpec& section : sections_) {
    if (section.path == path) return &section;
  }
  return nullptr;
}

std::vector<std::string> Schema::children(std::string_view section) const {
  std::vector<std::string> names;
  const auto add = [&](const std::string& path) {
    if (!path.empty() && parent_of(path) == section) names.emplace_back(name_of(path));
  };
  for (const SectionSpec& spec : sections_) add(spec.path);
  for (const KeySpec& spec : keys_) add(spec.path);
  return names;
}

std::vector<std::string> Schema::paths_named(std::string_view name) const {
  std::vector<std::string> paths;
  for (const SectionSpec& spec : sections_) {
    if (name_of(spec.path) == name) paths.push_back(spec.path);
  }
  for (const KeySpec& spec : keys_) {
    if (name_of(spec.path) == name) paths.push_back(spec.path);
  }
  return paths;
}

bool is_head_key(std::string_view first_part) {
  constexpr std::array<std::string_view, 10> kHead = {"model",      "framework", "task", "source", "licence",
                                                      "parameters", "entry",     "data", "target", "mutable"};
  return std::find(kHead.begin(), kHead.end(), first_part) != kHead.end();
}

const std::vector<ScheduleSpec>& schedules() {
  static const std::vector<ScheduleSpec> kSchedules = {
      {"constant", {"warmup_steps", "warmup_rate"}},
      {"cosine", {"warmup_steps", "warmup_rate", "min_lr", "decay_steps"}},
      {"linear", {"warmup_steps", "warmup_rate", "min_lr", "decay_steps"}},
      {"polynomial", {"warmup_steps", "warmup_rate", "min_lr", "decay_steps", "power"}},
      {"multistep", {"warmup_steps", "warmup_rate", "milestones", "gamma"}},
      {"one_cycle", {"decay_steps", "pct_start", "div_factor", "final_div_factor"}},
  };
  return kSchedules;
}

std::string type_text(const KeySpec& key) {
  std::string text;
  switch (key.type) {
    case KeyType::Bool: text = "boolean"; break;
    case KeyType::Int: text = "integer"; break;
    case KeyType::Double: text = "number"; break;
    case KeyType::String: text = "text"; break;
    case KeyType::IntList: text = "list of integers"; break;
    case KeyType::StringList: text = "list of text"; break;
  }
  return key.nullable ? text + " or null" : text;
}

std::string range_text(const KeySpec& key) {
  if (!key.choices.empty()) return "one of " + join(key.choices, ", ");
  std::vector<std::string> parts;
  if (key.min) parts.push_back((key.above_min ? "above " : "at least ") + number_text(*key.min));
  if (key.max) parts.push_back((key.below_max ? "below " : "at most ") + number_text(*key.max));
  std::string text = join(parts, ", ");
  if (key.no_limit) text += ", or -1 for no limit";
  return text;
}

}  // namespace assay
