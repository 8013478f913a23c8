#include "vendor/vendor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "config/case.h"
#include "config/peak_precisions.h"
#include "config/yaml.h"
#include "vendor/environment_file.h"

namespace assay {

namespace {

constexpr int kMaxDevices = 1024;
constexpr char kLayerVendorFile[] = "vendor";

[[noreturn]] void fail_at(const Value& value, const std::string& message) {
  throw ConfigError(fmt::format("{}: {}", value.origin().text(), message));
}

void check_keys(const Value& map, const std::string& path, const std::vector<std::string>& known) {
  for (const Value::Entry& entry : map.entries()) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    fail_at(entry.value, fmt::format("{} is not a known key{}; known here: {}", join_path(path, entry.key),
                                     did_you_mean(entry.key, known), join(known, ", ")));
  }
}

const Value* given(const Value& map, std::string_view key) {
  const Value* found = map.child(key);
  return found && !found->is_null() ? found : nullptr;
}

const Value& need_map(const Value& value, const std::string& path) {
  if (!value.is_map()) fail_at(value, fmt::format("{} must be a map, found {}", path, value.text()));
  return value;
}

std::vector<std::string> command_of(const Value& value, const std::string& path) {
  if (!value.is_list() || value.items().empty()) {
    fail_at(value, fmt::format("{} must be a command as a list of text, found {}", path, value.text()));
  }
  std::vector<std::string> command;
  for (const Value& item : value.items()) {
    if (!item.is_string()) fail_at(item, fmt::format("{} must be a list of text, found {} in it", path, item.text()));
    command.push_back(item.as_string());
  }
  if (command[0].empty()) fail_at(value, fmt::format("{} has no program", path));
  return command;
}

double positive(const Value& value, const std::string& path) {
  if (!value.is_number() || !(value.as_double() > 0) || !std::isfinite(value.as_double())) {
    fail_at(value, fmt::format("{} must be a number above 0, found {}; leave out what is unknown", path, value.text()));
  }
  return value.as_double();
}

void read_devices(VendorHardware& out, const Value& value, const std::string& path) {
  if (value.is_list()) {
    out.device_command = command_of(value, path);
    return;
  }
  if (!value.is_int() || value.as_int() < 1 || value.as_int() > kMaxDevices) {
    fail_at(value, fmt::format("{} must be a number from 1 to {}, or the command (a list) that prints it, found {}",
                               path, kMaxDevices, value.text()));
  }
  out.device_count = static_cast<int>(value.as_int());
}

// Figures without titles cannot be told apart, see monitor/devices.h.
void read_monitor(VendorHardware& out, const Value& value, const std::string& path) {
  out.monitor_command = command_of(value, path);
  for (const Value& item : value.items()) {
    if (item.as_string().find("noheader") == std::string::npos) continue;
    fail_at(item, fmt::format("{} must print titles above its figures, or a JSON object a line, found {}; leave out "
                              "noheader",
                              path, item.text()));
  }
}

VendorHardware read_hardware(const std::string& name, const Value& node) {
  VendorHardware out;
  out.name = name;
  const std::string path = "hardware." + name;
  if (!is_plain_name(name)) fail_at(node, fmt::format("{}: a hardware's name has letters, digits, '_-+.'", path));
  if (node.is_null()) return out;
  need_map(node, path);
  check_keys(node, path, {"visible_devices", "devices", "monitor", "peak_flops", "memory"});
  if (const Value* value = given(node, "visible_devices")) {
    if (!value->is_string() || !is_variable_name(value->as_string())) {
      fail_at(*value, fmt::format("{}.visible_devices must be the name of a variable, found {}", path, value->text()));
    }
    out.visible_devices = value->as_string();
  }
  if (const Value* value = given(node, "devices")) read_devices(out, *value, path + ".devices");
  if (const Value* value = given(node, "monitor")) read_monitor(out, *value, path + ".monitor");
  if (const Value* value = given(node, "memory")) out.memory_bytes = positive(*value, path + ".memory");
  if (const Value* peaks = given(node, "peak_flops")) {
    need_map(*peaks, path + ".peak_flops");
    check_keys(*peaks, path + ".peak_flops", peak_precisions());
    for (const Value::Entry& entry : peaks->entries()) {
      out.peak_flops[entry.key] = positive(entry.value, fmt::format("{}.peak_flops.{}", path, entry.key));
    }
  }
  return out;
}

// A file of the vendor: the one that vendor.yaml names, which must be there, or else the usual one if it is.
std::optional<fs::path> vendor_part(const fs::path& folder, const Value& root, const std::string& key) {
  std::error_code error;
  if (const Value* named = given(root, key)) {
    if (!named->is_string() || named->as_string().empty()) {
      fail_at(*named, fmt::format("{} must be the name of a file, found {}", key, named->text()));
    }
    const fs::path name = named->as_string();
    const fs::path plain = name.lexically_normal();
    if (name.is_absolute() || (!plain.empty() && *plain.begin() == "..")) {
      fail_at(*named, fmt::format("{} is a file in the vendor's folder, found {}", key, named->text()));
    }
    const fs::path path = (folder / name).lexically_normal();
    if (!fs::is_regular_file(path, error)) {
      fail_at(*named, fmt::format("{} names {}, which is not there", key, path.string()));
    }
    return path;
  }
  const fs::path usual = folder / key;
  if (fs::is_regular_file(usual, error)) return usual;
  return std::nullopt;
}

void read_head(VendorInfo& info, const Value& root) {
  check_keys(root, "", {"name", "hardware", "environment", "setup"});
  const Value* name = given(root, "name");
  if (!name) throw ConfigError(fmt::format("{}: name is missing", root.origin().text()));
  if (!name->is_string() || name->as_string() != info.name) {
    fail_at(*name, fmt::format("name is {}, but the folder is called '{}'", name->text(), info.name));
  }
  const Value* hardware = given(root, "hardware");
  if (!hardware || !hardware->is_map() || hardware->entries().empty()) {
    throw ConfigError(fmt::format("{}: hardware must be a map with at least one kind of device",
                                  (hardware ? hardware : &root)->origin().text()));
  }
  for (const Value::Entry& entry : hardware->entries()) {
    info.hardware[entry.key] = read_hardware(entry.key, entry.value);
  }
}

}  // namespace

const VendorHardware* VendorInfo::find(std::string_view wanted) const {
  const auto found = hardware.find(std::string(wanted));
  return found == hardware.end() ? nullptr : &found->second;
}

VendorInfo read_vendor(const fs::path& home, const std::string& vendor) {
  const auto known = list_vendors(home);
  if (!is_plain_name(vendor) || std::find(known.begin(), known.end(), vendor) == known.end()) {
    throw ConfigError(fmt::format("there is no vendor '{}' in {}{}", vendor, (home / "vendors").string(),
                                  did_you_mean(vendor, known)));
  }
  VendorInfo info;
  info.name = vendor;
  info.folder = (home / "vendors" / vendor).lexically_normal();
  const fs::path file = info.folder / "vendor.yaml";
  std::error_code error;
  info.has_file = fs::exists(file, error);
  Value root = Value::map();
  if (info.has_file) {
    root = load_yaml(file, kLayerVendorFile);
    read_head(info, root);
  }
  if (const auto path = vendor_part(info.folder, root, "environment")) {
    EnvironmentFile read = read_environment_file(*path);
    info.environment = std::move(read.variables);
    info.warnings = std::move(read.warnings);
  }
  info.setup = vendor_part(info.folder, root, "setup");
  return info;
}

std::map<std::string, std::string> vendor_environment(const VendorInfo& vendor, const std::string& case_name) {
  std::map<std::string, std::string> out = vendor.environment;
  std::error_code error;
  const fs::path own = vendor.folder / case_name / "environment";
  if (!is_plain_name(case_name) || !fs::exists(own, error)) return out;
  for (auto& [name, value] : read_environment_file(own).variables) out[name] = value;
  return out;
}

std::optional<int> device_count_of(std::string_view output) {
  for (const std::string& line : split(output, '\n')) {
    const size_t last = line.find_last_of("0123456789");
    if (last == std::string::npos) continue;
    const size_t before = line.find_last_not_of("0123456789", last);
    const size_t first = before == std::string::npos ? 0 : before + 1;
    const auto count = parse_int(std::string_view(line).substr(first, last - first + 1));
    if (!count || *count < 1 || *count > kMaxDevices) return std::nullopt;
    return static_cast<int>(*count);
  }
  return std::nullopt;
}

Json to_json(const VendorHardware& hardware) {
  Json json = {{"name", hardware.name},
               {"visible_devices", hardware.visible_devices ? Json(*hardware.visible_devices) : Json()},
               {"devices", hardware.device_count ? Json(*hardware.device_count) : Json()},
               {"device_command", hardware.device_command},
               {"monitor", hardware.monitor_command},
               {"peak_flops", Json::object()},
               {"memory", hardware.memory_bytes ? Json(*hardware.memory_bytes) : Json()}};
  for (const auto& [precision, peak] : hardware.peak_flops) json["peak_flops"][precision] = peak;
  return json;
}

}  // namespace assay
