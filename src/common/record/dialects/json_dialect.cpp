#include "record/dialects/json_dialect.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "record/json_text.h"
#include "record/members.h"

namespace assay {

namespace {

constexpr char kOurs[] = "assay";

std::string python_text(const Json& value) {
  std::string out;
  append_json(out, value, JsonStyle::Python);
  return out;
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

Json in_order(const Json& object, const std::vector<std::string>& keys) {
  Json ordered = Json::object();
  for (const std::string& key : keys) {
    if (object.contains(key)) ordered[key] = object[key];
  }
  for (const auto& [key, value] : object.items()) {
    if (!ordered.contains(key)) ordered[key] = value;
  }
  return ordered;
}

// Turns `object` into what `leftover` remembers of an original; tolerates any content, since records come from files.
void patch(Json& object, const Json& leftover) {
  if (const Json* members = member(leftover, "members"); members && members->is_object()) {
    for (const auto& [key, value] : members->items()) object[key] = value;
  }
  if (const Json* absent = member(leftover, "absent"); absent && absent->is_array()) {
    for (const Json& key : *absent) {
      if (key.is_string()) object.erase(key.get<std::string>());
    }
  }
  if (const Json* order = member(leftover, "order"); order && order->is_array()) {
    std::vector<std::string> keys;
    for (const Json& key : *order) {
      if (key.is_string()) keys.push_back(key.get<std::string>());
    }
    object = in_order(object, keys);
  }
}

// The way back: what must be remembered to make `usual` into `original`. {} when they are the same.
Json leftover_of(const Json& original, const Json& usual) {
  Json leftover = Json::object();
  Json members = Json::object();
  for (const auto& [key, value] : original.items()) {
    if (!usual.contains(key) || python_text(usual[key]) != python_text(value)) members[key] = value;
  }
  Json absent = Json::array();
  for (const std::string& key : keys_of(usual)) {
    if (!original.contains(key)) absent.push_back(key);
  }
  if (!members.empty()) leftover["members"] = std::move(members);
  if (!absent.empty()) leftover["absent"] = std::move(absent);
  Json patched = usual;
  patch(patched, leftover);
  if (keys_of(patched) != keys_of(original)) leftover["order"] = keys_of(original);
  return leftover;
}

class JsonLineReader : public LineReader {
 public:
  explicit JsonLineReader(const JsonDialect& dialect) : dialect_(dialect) {}
  void read(std::string_view line, const std::string& where, std::vector<Record>& records) override {
    records.push_back(dialect_.read(line, where));
  }

 private:
  const JsonDialect& dialect_;
};

class JsonLineWriter : public LineWriter {
 public:
  explicit JsonLineWriter(const JsonDialect& dialect) : dialect_(dialect) {}
  void write(const Record& record, std::string& out) override {
    out += dialect_.write(record);
    out += '\n';
  }

 private:
  const JsonDialect& dialect_;
};

}  // namespace

std::optional<JsonDialect::Found> JsonDialect::find(std::string_view line) const {
  std::optional<Found> first;
  for (const std::string& mark : marks()) {
    const size_t at = line.find(mark + "{");
    if (at == std::string_view::npos || (first && first->start <= at)) continue;
    // A launcher may have put something before the mark ("0: ", "[1,0]<stdout>:"), but no part of a word.
    if (at > 0 && std::isalnum(static_cast<unsigned char>(line[at - 1]))) continue;
    first = Found{.start = at, .json = at + mark.size()};
  }
  return first;
}

bool JsonDialect::recognises(std::string_view line) const { return find(line).has_value(); }
std::unique_ptr<LineReader> JsonDialect::reader() const { return std::make_unique<JsonLineReader>(*this); }
std::unique_ptr<LineWriter> JsonDialect::writer() const { return std::make_unique<JsonLineWriter>(*this); }

// The record behind an object without our member.
Record JsonDialect::interpret(const Json& object, std::string_view prefix) const {
  Record record = decode(object);
  Json leftover = leftover_of(object, encode(record));
  if (!prefix.empty()) leftover["prefix"] = std::string(prefix);
  if (!leftover.empty()) record.extra[std::string(name())] = std::move(leftover);
  return record;
}

Json JsonDialect::build(const Record& record, const Json& extra) const {
  Json object = encode(record);
  patch(object, extra);
  object.erase(kOurs);
  return object;
}

std::string JsonDialect::write(const Record& record) const {
  const Json* extra = member(record.extra, std::string(name()).c_str());
  const Json object = build(record, extra ? *extra : Json());
  std::string prefix = extra ? string_member(*extra, "prefix") : "";
  if (prefix.find('\n') != std::string::npos) prefix.clear();
  std::string line = prefix + mark_of(object);
  // A prefix that hides the mark would make the line unreadable.
  const std::optional<Found> found = find(line + "{");
  if (!found || found->start != prefix.size() || found->json != line.size()) {
    prefix.clear();
    line = mark_of(object);
  }
  const Json missing = difference(interpret(object, prefix), record);
  Json complete = object;
  if (!missing.empty()) complete[kOurs] = missing;
  append_json(line, complete, JsonStyle::Python);
  return line;
}

Record JsonDialect::read(std::string_view line, const std::string& where) const {
  const std::optional<Found> found = find(line);
  if (!found) throw DataError(fmt::format("{}: not a line of {}", where, name()));
  Json object = parse_python_json(line.substr(found->json), where);
  if (!object.is_object()) throw DataError(fmt::format("{}: a JSON object must follow the mark", where));
  Json ours = Json::object();
  if (object.contains(kOurs)) {
    ours = std::move(object[kOurs]);
    object.erase(kOurs);
    if (!ours.is_object()) throw DataError(fmt::format("{}: '{}' must be an object", where, kOurs));
  }
  Record record = interpret(object, line.substr(0, found->start));
  for (auto& [key, value] : ours.items()) set_member(record, key, std::move(value), where);
  return record;
}

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string string_member(const Json& object, const char* key) {
  const Json* value = member(object, key);
  return value && value->is_string() ? value->get<std::string>() : std::string();
}

namespace {

std::optional<int64_t> integer_of(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return std::nullopt;
  }
  return value.get<int64_t>();
}

}  // namespace

std::optional<int64_t> integer_member(const Json& object, const char* key) {
  const Json* value = member(object, key);
  return value ? integer_of(*value) : std::nullopt;
}

std::optional<int> small_integer(const Json& value) {
  const std::optional<int64_t> number = integer_of(value);
  if (!number || *number < std::numeric_limits<int>::min() || *number > std::numeric_limits<int>::max()) {
    return std::nullopt;
  }
  return static_cast<int>(*number);
}

int64_t microseconds(std::optional<int64_t> milliseconds) {
  constexpr int64_t kLimit = std::numeric_limits<int64_t>::max() / 1000;
  if (!milliseconds || *milliseconds > kLimit || *milliseconds < -kLimit) return 0;
  return *milliseconds * 1000;
}

std::optional<std::vector<int64_t>> integer_list(const Json* value) {
  if (!value || !value->is_array()) return std::nullopt;
  std::vector<int64_t> list;
  for (const Json& item : *value) {
    const std::optional<int64_t> number = integer_of(item);
    if (!number) return std::nullopt;
    list.push_back(*number);
  }
  return list;
}

}  // namespace assay
