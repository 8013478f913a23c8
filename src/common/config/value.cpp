#include "config/value.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace assay {

Value::Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

Value Value::null(Origin origin) {
  Value value;
  value.origin_ = std::move(origin);
  return value;
}

Value Value::boolean(bool content, Origin origin) {
  Value value = null(std::move(origin));
  value.data_ = content;
  return value;
}

Value Value::integer(int64_t content, Origin origin) {
  Value value = null(std::move(origin));
  value.data_ = content;
  return value;
}

Value Value::real(double content, Origin origin) {
  Value value = null(std::move(origin));
  value.data_ = content;
  return value;
}

Value Value::string(std::string content, Origin origin) {
  Value value = null(std::move(origin));
  value.data_ = std::move(content);
  return value;
}

Value Value::list(Origin origin) {
  Value value = null(std::move(origin));
  value.data_ = List{};
  return value;
}

Value Value::map(Origin origin) {
  Value value = null(std::move(origin));
  value.data_ = Map{};
  return value;
}

Value Value::of(const Json& json, const Origin& origin) {
  if (json.is_boolean()) return boolean(json.get<bool>(), origin);
  if (json.is_number_integer()) return integer(json.get<int64_t>(), origin);
  if (json.is_number()) return real(json.get<double>(), origin);
  if (json.is_string()) return string(json.get<std::string>(), origin);
  if (json.is_array()) {
    Value value = list(origin);
    for (const Json& item : json) value.items().push_back(of(item, origin));
    return value;
  }
  if (json.is_object()) {
    Value value = map(origin);
    for (const auto& [key, item] : json.items()) value.entries().push_back({key, of(item, origin)});
    return value;
  }
  return null(origin);
}

bool Value::as_bool() const {
  ASSAY_CHECK(is_bool(), text());
  return std::get<bool>(data_);
}

int64_t Value::as_int() const {
  ASSAY_CHECK(is_int(), text());
  return std::get<int64_t>(data_);
}

double Value::as_double() const {
  ASSAY_CHECK(is_number(), text());
  return is_int() ? static_cast<double>(std::get<int64_t>(data_)) : std::get<double>(data_);
}

const std::string& Value::as_string() const {
  ASSAY_CHECK(is_string(), text());
  return std::get<std::string>(data_);
}

const Value::List& Value::items() const {
  ASSAY_CHECK(is_list(), text());
  return std::get<List>(data_);
}

Value::List& Value::items() {
  ASSAY_CHECK(is_list(), text());
  return std::get<List>(data_);
}

const Value::Map& Value::entries() const {
  ASSAY_CHECK(is_map(), text());
  return std::get<Map>(data_);
}

Value::Map& Value::entries() {
  ASSAY_CHECK(is_map(), text());
  return std::get<Map>(data_);
}

const Value* Value::child(std::string_view key) const {
  if (!is_map()) return nullptr;
  for (const Entry& entry : entries()) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Value* Value::child(std::string_view key) { return const_cast<Value*>(std::as_const(*this).child(key)); }

const Value* Value::find(std::string_view path) const {
  const Value* node = this;
  while (node && !path.empty()) {
    const size_t dot = path.find('.');
    const std::string_view key = path.substr(0, dot);
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
    if (node->is_list()) {
      const auto index = parse_int(key);
      const bool inside = index && *index >= 0 && static_cast<size_t>(*index) < node->items().size();
      node = inside ? &node->items()[static_cast<size_t>(*index)] : nullptr;
    } else {
      node = node->child(key);
    }
  }
  return node;
}

Value* Value::find(std::string_view path) { return const_cast<Value*>(std::as_const(*this).find(path)); }

void Value::set(std::string_view key, Value value) {
  if (Value* old = child(key)) {
    *old = std::move(value);
  } else {
    entries().push_back({std::string(key), std::move(value)});
  }
}

void Value::erase(std::string_view key) {
  std::erase_if(entries(), [&](const Entry& entry) { return entry.key == key; });
}

void Value::set_path(std::string_view path, Value value) {
  const size_t dot = path.find('.');
  if (dot == std::string_view::npos) return set(path, std::move(value));
  const std::string_view key = path.substr(0, dot);
  Value* next = child(key);
  if (!next || !next->is_map()) {
    set(key, map(value.origin()));
    next = child(key);
  }
  next->set_path(path.substr(dot + 1), std::move(value));
}

void Value::set_origin_deep(const Origin& origin) {
  origin_ = origin;
  if (is_list()) {
    for (Value& item : items()) item.set_origin_deep(origin);
  } else if (is_map()) {
    for (Entry& entry : entries()) entry.value.set_origin_deep(origin);
  }
}

bool Value::same_as(const Value& other) const {
  if (type() != other.type()) return false;
  if (is_double()) {
    return as_double() == other.as_double() || (std::isnan(as_double()) && std::isnan(other.as_double()));
  }
  if (is_list()) {
    return std::equal(items().begin(), items().end(), other.items().begin(), other.items().end(),
                      [](const Value& a, const Value& b) { return a.same_as(b); });
  }
  if (is_map()) {
    if (entries().size() != other.entries().size()) return false;
    for (const Entry& entry : entries()) {
      const Value* twin = other.child(entry.key);
      if (!twin || !entry.value.same_as(*twin)) return false;
    }
    return true;
  }
  if (is_bool()) return as_bool() == other.as_bool();
  if (is_int()) return as_int() == other.as_int();
  return is_null() || as_string() == other.as_string();
}

Json Value::to_json() const {
  switch (type()) {
    case Type::Null: return nullptr;
    case Type::Bool: return as_bool();
    case Type::Int: return as_int();
    case Type::Double: return json_number(as_double());
    case Type::String: return as_string();
    case Type::List: {
      Json json = Json::array();
      for (const Value& item : items()) json.push_back(item.to_json());
      return json;
    }
    case Type::Map: {
      Json json = Json::object();
      for (const Entry& entry : entries()) json[entry.key] = entry.value.to_json();
      return json;
    }
  }
  return nullptr;
}

std::string Value::text() const {
  switch (type()) {
    case Type::Null: return "null";
    case Type::Bool: return as_bool() ? "true" : "false";
    case Type::Int: return std::to_string(as_int());
    case Type::Double: return python_float(as_double());
    case Type::String: return fmt::format("'{}'", as_string());
    case Type::List: {
      std::vector<std::string> parts;
      for (const Value& item : items()) parts.push_back(item.text());
      return "[" + assay::join(parts, ", ") + "]";
    }
    case Type::Map: {
      std::vector<std::string> parts;
      for (const Entry& entry : entries()) parts.push_back(entry.key + ": " + entry.value.text());
      return "{" + assay::join(parts, ", ") + "}";
    }
  }
  return "";
}

std::string_view type_text(Value::Type type) {
  switch (type) {
    case Value::Type::Null: return "null";
    case Value::Type::Bool: return "a boolean";
    case Value::Type::Int: return "an integer";
    case Value::Type::Double: return "a number";
    case Value::Type::String: return "text";
    case Value::Type::List: return "a list";
    case Value::Type::Map: return "a map";
  }
  return "";
}

std::vector<std::string> keys_of(const Value& map) {
  std::vector<std::string> keys;
  if (!map.is_map()) return keys;
  for (const Value::Entry& entry : map.entries()) keys.push_back(entry.key);
  return keys;
}

std::string join_path(std::string_view parent, std::string_view key) {
  return parent.empty() ? std::string(key) : fmt::format("{}.{}", parent, key);
}

}  // namespace assay
