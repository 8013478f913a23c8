#include "launch/site_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "config/merge.h"

namespace assay {

namespace {

constexpr int64_t kMaxDeviceNumber = 4095;

}  // namespace

void fail_at(const Value& value, const std::string& what) {
  throw ConfigError(fmt::format("{}: {}", value.origin().text(), what));
}

void check_keys(const Value& map, const std::vector<std::string>& known, const std::string& what) {
  for (const Value::Entry& entry : map.entries()) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    fail_at(entry.value, fmt::format("{} has no '{}'{}; it has {}", what, entry.key, did_you_mean(entry.key, known),
                                     join(known, ", ")));
  }
}

std::string text_of(const Value& value, const std::string& what) {
  if (value.is_string()) return value.as_string();
  if (value.is_number() || value.is_bool()) return to_line(value.to_json());
  fail_at(value, fmt::format("{} is a text, found {}", what, value.text()));
}

std::vector<int> device_numbers_of(const Value& list) {
  if (!list.is_list() || list.items().empty()) {
    fail_at(list, "devices is a list of the numbers of devices, such as [4, 5]");
  }
  std::vector<int> devices;
  for (const Value& item : list.items()) {
    const bool is_number = item.is_int() && item.as_int() >= 0 && item.as_int() <= kMaxDeviceNumber;
    if (!is_number) fail_at(item, fmt::format("{} is not the number of a device", item.text()));
    const int device = static_cast<int>(item.as_int());
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) {
      fail_at(item, fmt::format("device {} is there twice", device));
    }
    devices.push_back(device);
  }
  return devices;
}

SiteFile::SiteFile(const std::filesystem::path& path, const Value& root)
    : path_(std::filesystem::absolute(path)), root_(root), plain_(root.to_json()) {
  auto origins = std::make_shared<Origins>();
  for (const Leaf& leaf : leaves_of(root)) (*origins)[leaf.path] = leaf.value->origin().text();
  origins_ = std::move(origins);
}

Reader SiteFile::section(const std::string& key) const { return Reader(plain_, "", origins_).section(key); }

std::string SiteFile::located(const std::string& name) const {
  if (name.empty()) return name;
  return (path_.parent_path() / name).lexically_normal().string();
}

}  // namespace assay
