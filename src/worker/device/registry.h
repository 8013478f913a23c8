// The devices that a run may name in Global.device: the processor, and those that a vendor's plugin adds. Knows what a
// device can compute at most, and never another device's figure: unknown stays unknown.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay {

struct DeviceSpec {
  std::string name;          // what Global.device says
  std::string type = "cpu";  // libtorch's device that computes: "cpu", "cuda", "privateuseone:0"
  // Operations a second by precision, one of config/peak_precisions.h. Absent: unknown.
  std::map<std::string, double> peak_flops = {};
};

// Throws ConfigError: no name, an unknown precision, a peak that is not a positive number.
void check_device(const DeviceSpec& device);

class DeviceRegistry {
 public:
  DeviceRegistry();  // knows cpu
  // `vendor` says who adds it. Throws ConfigError as check_device, and for a name that is taken.
  void add(const DeviceSpec& device, const std::string& vendor);
  // Null when there is none of this name.
  const DeviceSpec* find(const std::string& name) const;
  std::vector<std::string> names() const;
  // A second, in this precision; nullopt: unknown. The processor's float32 peak is measured on `num_threads` threads,
  // which takes 0.1 s.
  std::optional<double> peak_flops(const std::string& name, const std::string& precision, int num_threads) const;

 private:
  std::vector<DeviceSpec> devices_;
};

}  // namespace assay
