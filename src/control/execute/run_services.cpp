#include "execute/run_services.h"

#include "launch/host/local.h"
#include "launch/launchers.h"

namespace assay {

RunServices run_services(const Plan& plan, const ExecuteOptions& options) {
  RunServices services{.launcher = nullptr, .hosts = nullptr, .options = options};
  if (!plan.site) {
    services.launcher = std::make_unique<LocalLauncher>();
    return services;
  }
  const Site& site = *plan.site;
  services.launcher = launcher_named(site.launcher).make(site);
  services.hosts = std::make_unique<HostPool>(site.hosts);
  services.options.hosts = services.hosts.get();
  services.options.concurrency = site.concurrency;
  services.options.max_failures = site.max_failures;
  services.options.site = site.settings;
  return services;
}

}  // namespace assay
