#include "launch/launchers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "launch/local/local_kind.h"
#include "launch/slurm/slurm_kind.h"
#include "launch/ssh/ssh_kind.h"

namespace assay {

const std::vector<const LauncherKind*>& launchers() {
  static const std::vector<const LauncherKind*> kKinds = {
      local_kind(),
      ssh_kind(),
      slurm_kind(),
  };
  return kKinds;
}

std::vector<std::string> launcher_names() {
  std::vector<std::string> names;
  for (const LauncherKind* kind : launchers()) names.push_back(kind->name());
  return names;
}

const LauncherKind& launcher_named(const std::string& name) {
  for (const LauncherKind* kind : launchers()) {
    if (kind->name() == name) return *kind;
  }
  const std::vector<std::string> names = launcher_names();
  throw DataError(
      fmt::format("'{}' is not a launcher{}; there are {}", name, did_you_mean(name, names), join(names, ", ")));
}

std::vector<NodePlace> LauncherKind::places(const Site& site, const SiteDemand& demand) const {
  const auto most = static_cast<size_t>(demand.nproc) * static_cast<size_t>(std::max(1, site.concurrency));
  std::vector<NodePlace> out;
  for (const Host& host : site.hosts) {
    std::vector<int> devices = host.usable_devices();
    std::sort(devices.begin(), devices.end());
    devices.resize(std::min(devices.size(), most));
    out.push_back({.host = host, .devices = std::move(devices)});
  }
  return out;
}

}  // namespace assay
