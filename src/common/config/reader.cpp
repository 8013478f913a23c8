#include "config/reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace assay {

namespace {

const Json& empty_object() {
  static const Json kEmpty = Json::object();
  return kEmpty;
}

bool is_integer(const Json& value) {
  // An unsigned value above the range of int64_t is none of ours.
  return value.is_number_integer() && !(value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX});
}

}  // namespace

Reader::Reader(const Json& node, std::string path, std::shared_ptr<const Origins> origins)
    : node_(node.is_null() ? &empty_object() : &node), path_(std::move(path)), origins_(std::move(origins)) {
  if (!node_->is_object()) {
    throw ConfigError(fmt::format("{}{} must be a section, found {}", place(path_), path_, to_line(node)));
  }
}

std::string Reader::place(const std::string& path) const {
  if (!origins_) return "";
  if (const auto exact = origins_->find(path); exact != origins_->end()) return exact->second + ": ";
  // A section has no place of its own: that of its first key. A missing key has that of its section.
  for (const std::string& section : {path, path_}) {
    const auto first = origins_->lower_bound(section + ".");
    if (first != origins_->end() && first->first.starts_with(section + ".")) return first->second + ": ";
  }
  return "";
}

void Reader::fail(const std::string& key, const std::string& message) const {
  const std::string path = path_.empty() ? key : path_ + "." + key;
  const auto found = node_->find(key);
  const std::string value = found == node_->end() ? "nothing" : to_line(*found);
  throw ConfigError(fmt::format("{}{} {}, found {}", place(path), path, message, value));
}

const Json* Reader::find(const std::string& key) {
  read_.insert(key);
  const auto found = node_->find(key);
  return found == node_->end() || found->is_null() ? nullptr : &*found;
}

const Json& Reader::need(const std::string& key, const Json* found) const {
  if (!found) fail(key, "is required");
  return *found;
}

bool Reader::has(const std::string& key) const {
  const auto found = node_->find(key);
  return found != node_->end() && !found->is_null();
}

std::vector<std::string> Reader::keys() const {
  std::vector<std::string> out;
  for (const auto& [key, value] : node_->items()) out.push_back(key);
  return out;
}

bool Reader::get_bool(const std::string& key) {
  const Json& value = need(key, find(key));
  if (!value.is_boolean()) fail(key, "must be true or false");
  return value.get<bool>();
}

bool Reader::get_bool(const std::string& key, bool fallback) { return find(key) ? get_bool(key) : fallback; }

int64_t Reader::get_int(const std::string& key) {
  const Json& value = need(key, find(key));
  if (!is_integer(value)) fail(key, "must be an integer");
  return value.get<int64_t>();
}

int64_t Reader::get_int(const std::string& key, int64_t fallback) { return find(key) ? get_int(key) : fallback; }

std::optional<int64_t> Reader::get_optional_int(const std::string& key) {
  if (!find(key)) return std::nullopt;
  return get_int(key);
}

double Reader::get_double(const std::string& key) {
  const Json& value = need(key, find(key));
  if (!is_number(value)) fail(key, "must be a number");
  return number_of(value);
}

double Reader::get_double(const std::string& key, double fallback) { return find(key) ? get_double(key) : fallback; }

std::optional<double> Reader::get_optional_double(const std::string& key) {
  if (!find(key)) return std::nullopt;
  return get_double(key);
}

std::string Reader::get_string(const std::string& key) {
  const Json& value = need(key, find(key));
  if (!value.is_string()) fail(key, "must be text");
  return value.get<std::string>();
}

std::string Reader::get_string(const std::string& key, const std::string& fallback) {
  return find(key) ? get_string(key) : fallback;
}

std::optional<std::string> Reader::get_optional_string(const std::string& key) {
  if (!find(key)) return std::nullopt;
  return get_string(key);
}

std::string Reader::get_choice(const std::string& key, const std::vector<std::string>& words,
                               const std::string& fallback) {
  const std::string word = get_string(key, fallback);
  if (std::find(words.begin(), words.end(), word) == words.end()) {
    fail(key, fmt::format("must be one of {}{}", join(words, ", "), did_you_mean(word, words)));
  }
  return word;
}

template <typename Item, typename Fits>
std::vector<Item> Reader::get_list(const std::string& key, std::vector<Item> fallback, const char* wanted, Fits fits) {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), fits)) fail(key, wanted);
  std::vector<Item> out;
  for (const Json& item : *value) {
    if constexpr (std::is_same_v<Item, double>) {
      out.push_back(number_of(item));
    } else {
      out.push_back(item.get<Item>());
    }
  }
  return out;
}

std::vector<int64_t> Reader::get_ints(const std::string& key, std::vector<int64_t> fallback) {
  return get_list(key, std::move(fallback), "must be a list of integers", is_integer);
}

std::vector<double> Reader::get_doubles(const std::string& key, std::vector<double> fallback) {
  return get_list(key, std::move(fallback), "must be a list of numbers",
                  [](const Json& item) { return is_number(item); });
}

std::vector<std::string> Reader::get_strings(const std::string& key, std::vector<std::string> fallback) {
  return get_list(key, std::move(fallback), "must be a list of text",
                  [](const Json& item) { return item.is_string(); });
}

Reader Reader::section(const std::string& key) {
  const Json* value = find(key);
  return Reader(value ? *value : empty_object(), path_.empty() ? key : path_ + "." + key, origins_);
}

void Reader::finish() const {
  for (const auto& [key, value] : node_->items()) {
    if (value.is_null() || read_.contains(key)) continue;
    const std::vector<std::string> known(read_.begin(), read_.end());
    const std::string path = path_.empty() ? key : path_ + "." + key;
    throw ConfigError(fmt::format("{}{} is not known here{}; known: {}", place(path), path, did_you_mean(key, known),
                                  join(known, ", ")));
  }
}

}  // namespace assay
