// How ranks are run on the hosts of a site, whatever launcher starts them.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace assay {

struct SiteSettings {
  std::string visible_devices = {};  // the variable that tells a rank its devices: "CUDA_VISIBLE_DEVICES"; empty: none
  double lease_s = 60;               // what runs on a host ends when its lease was not renewed for so long
  double monitor_interval_s = 0;     // 0: no monitor
  std::vector<std::string> monitor_command = {};  // prints figures of the devices: monitor/devices.h
  bool clear_caches = false;                      // drop the page cache before a case, where that is allowed
  // What prepares a host before its first job of the run, and its variables; empty: nothing. Needs a run folder that
  // all hosts share: launch/host/host_setup.h.
  std::vector<std::string> setup = {};
  std::map<std::string, std::string> setup_env = {};
  bool operator==(const SiteSettings&) const = default;
};

}  // namespace assay
