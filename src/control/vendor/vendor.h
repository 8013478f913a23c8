// What a vendor says of its devices, in vendors/<vendor>/: vendor.yaml, environment, setup. Which keys of a case it
// changes is config/case.h's; the plugin's code is the data plane's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/json.h"

namespace assay {

// One kind of device, the HARDWARE of case keys.
struct VendorHardware {
  std::string name;                            // "A100"
  std::optional<std::string> visible_devices;  // the variable that says which devices a process sees
  std::optional<int> device_count;             // of a host, when it is always the same
  std::vector<std::string> device_command;     // prints it; see device_count_of
  std::vector<std::string> monitor_command;    // prints a sample of every device; empty: none
  std::map<std::string, double> peak_flops;    // precision -> operations a second of one device; unknown: not there
  std::optional<double> memory_bytes;          // of one device
};

struct VendorInfo {
  std::string name;
  fs::path folder;
  bool has_file = false;  // vendor.yaml is there
  std::map<std::string, VendorHardware> hardware;
  std::map<std::string, std::string> environment;  // of every case of this vendor
  std::optional<fs::path> setup;                   // run once on a host before its first case
  std::vector<std::string> warnings;               // "FILE:LINE: ..."

  // nullptr when vendor.yaml does not have it.
  const VendorHardware* find(std::string_view hardware) const;
};

// Throws ConfigError naming file, line and key, with the nearest known key: unknown keys, wrong types, files that
// vendor.yaml names and that are not there, environment lines that are not KEY=VALUE. A vendor without vendor.yaml has
// no hardware, but its files `environment` and `setup` count.
VendorInfo read_vendor(const fs::path& home, const std::string& vendor);

// The vendor's variables and, over them, those of vendors/<vendor>/<case>/environment. Throws ConfigError.
std::map<std::string, std::string> vendor_environment(const VendorInfo& vendor, const std::string& case_name);

// The number in what a device_command printed: the last one of the first line that has any. nullopt: none, or 0.
std::optional<int> device_count_of(std::string_view output);

Json to_json(const VendorHardware& hardware);

}  // namespace assay
