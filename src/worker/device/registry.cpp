#include "device/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "config/peak_precisions.h"
#include "device/cpu.h"

namespace assay {

namespace {

constexpr char kProcessor[] = "cpu";
constexpr double kPeakSeconds = 0.1;

}  // namespace

void check_device(const DeviceSpec& device) {
  if (device.name.empty() || device.type.empty()) throw ConfigError("a device needs a name and libtorch's type");
  const std::vector<std::string>& known = peak_precisions();
  for (const auto& [precision, peak] : device.peak_flops) {
    if (std::find(known.begin(), known.end(), precision) == known.end()) {
      throw ConfigError(fmt::format("device '{}': unknown precision '{}'{}; known are {}", device.name, precision,
                                    did_you_mean(precision, known), join(known, ", ")));
    }
    if (!std::isfinite(peak) || peak <= 0) {
      throw ConfigError(
          fmt::format("device '{}': the peak of {} is {}; leave out what is unknown", device.name, precision, peak));
    }
  }
}

DeviceRegistry::DeviceRegistry() { devices_.push_back({.name = kProcessor, .type = kProcessor}); }

void DeviceRegistry::add(const DeviceSpec& device, const std::string& vendor) {
  check_device(device);
  if (find(device.name)) {
    throw ConfigError(fmt::format("{}: device '{}' already exists; choose another name", vendor, device.name));
  }
  devices_.push_back(device);
}

const DeviceSpec* DeviceRegistry::find(const std::string& name) const {
  const auto found =
      std::find_if(devices_.begin(), devices_.end(), [&](const DeviceSpec& device) { return device.name == name; });
  return found == devices_.end() ? nullptr : &*found;
}

std::vector<std::string> DeviceRegistry::names() const {
  std::vector<std::string> names;
  for (const DeviceSpec& device : devices_) names.push_back(device.name);
  return names;
}

std::optional<double> DeviceRegistry::peak_flops(const std::string& name, const std::string& precision,
                                                 int num_threads) const {
  const DeviceSpec* device = find(name);
  if (!device) return std::nullopt;
  if (const auto found = device->peak_flops.find(precision); found != device->peak_flops.end()) return found->second;
  if (name == kProcessor && precision == "float32") return measure_fma_gflops(num_threads, kPeakSeconds) * 1e9;
  return std::nullopt;
}

}  // namespace assay
