// Strict reading of JSON objects that come from elsewhere: each field by name and type, and nothing else beside them.
#pragma once

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace assay {

class JsonFields {
 public:
  // Throws DataError beginning with `where` when the value is no object, as every other function here.
  JsonFields(const Json& value, std::string where) : value_(value), where_(std::move(where)) {
    if (!value.is_object()) throw DataError(where_ + ": must be an object");
  }

  bool has(const char* name) {
    known_.insert(name);
    return value_.contains(name) && !value_[name].is_null();
  }
  const Json& any(const char* name) {
    if (!has(name)) fail(name, "is missing");
    return value_[name];
  }
  std::string text(const char* name, size_t max_bytes = 1 << 20) { return text_of(any(name), name, max_bytes); }
  int64_t integer(const char* name, int64_t least, int64_t most) {
    const Json& value = any(name);
    if (!value.is_number_integer()) fail(name, "must be an integer");
    if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
      fail(name, "is too large");
    const int64_t number = value.get<int64_t>();
    if (number < least || number > most) {
      fail(name,
           "must be " + std::to_string(least) + " to " + std::to_string(most) + ", not " + std::to_string(number));
    }
    return number;
  }
  double number(const char* name, double least, double most) {
    const Json& value = any(name);
    if (!value.is_number()) fail(name, "must be a number");
    const double number = value.get<double>();
    if (!std::isfinite(number) || number < least || number > most) fail(name, "is out of range");
    return number;
  }
  double finite(const char* name) {
    return number(name, std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max());
  }
  bool truth(const char* name) {
    const Json& value = any(name);
    if (!value.is_boolean()) fail(name, "must be true or false");
    return value.get<bool>();
  }
  std::vector<std::string> texts(const char* name) {
    std::vector<std::string> out;
    for (const Json& item : list(name)) out.push_back(text_of(item, name, 1 << 20));
    return out;
  }
  const Json& list(const char* name) {
    const Json& value = any(name);
    if (!value.is_array()) fail(name, "must be a list");
    return value;
  }
  const Json& object(const char* name) {
    const Json& value = any(name);
    if (!value.is_object()) fail(name, "must be an object");
    return value;
  }
  // After the last field: what else there is, is a mistake or made for another version.
  void end() const {
    for (const auto& [name, value] : value_.items()) {
      if (!known_.count(name)) fail(name, "is not known here");
    }
  }
  std::string path(const std::string& name) const { return where_ + ": " + name; }
  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    throw DataError(path(name) + " " + what);
  }

 private:
  std::string text_of(const Json& value, const char* name, size_t max_bytes) const {
    if (!value.is_string()) fail(name, "must be a text");
    std::string out = value.get<std::string>();
    if (out.size() > max_bytes) fail(name, "is too long");
    if (out.find('\0') != std::string::npos) fail(name, "holds a NUL byte");
    return out;
  }

  const Json& value_;
  std::string where_;
  std::set<std::string> known_;
};

}  // namespace assay
