#include "record/members.h"

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "record/json_text.h"

namespace assay {

Json members_of(const Record& record) {
  Json members = Json::object();
  members["type"] = std::string(type_name(record.type));
  members["time_us"] = record.time_us;
  members["elapsed_us"] = record.elapsed_us;
  members["rank"] = record.rank;
  members["name"] = record.name;
  members["step"] = record.step ? Json(*record.step) : Json();
  members["verbosity"] = static_cast<int>(record.verbosity);
  members["file"] = record.file;
  members["line"] = record.line;
  members["data"] = record.data;
  members["extra"] = record.extra;
  return members;
}

namespace {

[[noreturn]] void refuse(const std::string& where, std::string_view key, std::string_view expected) {
  throw DataError(fmt::format("{}: '{}' must be {}", where, key, expected));
}

int64_t integer(const Json& value, const std::string& where, std::string_view key) {
  const bool fits = !value.is_number_unsigned() ||
                    value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!value.is_number_integer() || !fits) refuse(where, key, "an integer");
  return value.get<int64_t>();
}

int small_integer(const Json& value, const std::string& where, std::string_view key) {
  const int64_t number = integer(value, where, key);
  if (number < std::numeric_limits<int>::min() || number > std::numeric_limits<int>::max()) {
    refuse(where, key, "a 32-bit integer");
  }
  return static_cast<int>(number);
}

const std::string& text(const Json& value, const std::string& where, std::string_view key) {
  if (!value.is_string()) refuse(where, key, "a string");
  return value.get_ref<const std::string&>();
}

std::optional<std::vector<int64_t>> step(const Json& value, const std::string& where, std::string_view key) {
  if (value.is_null()) return std::nullopt;
  if (!value.is_array()) refuse(where, key, "a list of integers");
  std::vector<int64_t> indices;
  for (const Json& index : value) indices.push_back(integer(index, where, key));
  return indices;
}

[[noreturn]] void refuse_key(const std::string& where, const std::string& key) {
  std::vector<std::string> known;
  const Json all = members_of(Record{});
  for (const auto& [name, value] : all.items()) known.push_back(name);
  throw DataError(fmt::format("{}: unknown key '{}'{}", where, key, did_you_mean(key, known)));
}

}  // namespace

void set_member(Record& record, const std::string& key, Json value, const std::string& where) {
  if (key == "type") {
    const auto type = type_of(text(value, where, key));
    if (!type) refuse(where, key, "event, parameters, metadata, metrics, environment, result or message");
    record.type = *type;
  } else if (key == "time_us") {
    record.time_us = integer(value, where, key);
  } else if (key == "elapsed_us") {
    record.elapsed_us = integer(value, where, key);
  } else if (key == "rank") {
    record.rank = small_integer(value, where, key);
  } else if (key == "name") {
    record.name = text(value, where, key);
  } else if (key == "step") {
    record.step = step(value, where, key);
  } else if (key == "verbosity") {
    const int64_t level = integer(value, where, key);
    if (level < -1 || level > 1) refuse(where, key, "-1, 0 or 1");
    record.verbosity = static_cast<Record::Verbosity>(level);
  } else if (key == "file") {
    record.file = text(value, where, key);
  } else if (key == "line") {
    record.line = small_integer(value, where, key);
  } else if (key == "data") {
    record.data = std::move(value);
  } else if (key == "extra") {
    if (!value.is_object() && !value.is_null()) refuse(where, key, "an object");
    record.extra = std::move(value);
  } else {
    refuse_key(where, key);
  }
}

Json difference(const Record& found, const Record& wanted) {
  const Json before = members_of(found);
  const Json after = members_of(wanted);
  Json changed = Json::object();
  std::string old_text;
  std::string new_text;
  for (const auto& [key, value] : after.items()) {
    old_text.clear();
    new_text.clear();
    append_json(old_text, before.at(key));
    append_json(new_text, value);
    if (old_text != new_text) changed[key] = value;
  }
  return changed;
}

}  // namespace assay
