#include "campaign_site.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "launch/hosts.h"
#include "launch/local_transport.h"
#include "launch/preflight.h"
#include "launch/slurm.h"
#include "launch/slurm_queue.h"
#include "launch/ssh_host.h"
#include "launch/ssh_transport.h"
#include "plan/campaign/campaign.h"
#include "plan/vendors/vendor.h"

namespace assay {

namespace {

constexpr int64_t kMinFreeBytes = int64_t{1} << 30;
constexpr double kProbeSeconds = 120;  // hashing of data included

std::vector<HostPool::Entry> pool_of(const CampaignSite& site) {
  std::vector<HostPool::Entry> entries;
  for (const CampaignHost& from : site.hosts) {
    Host host{.name = from.name, .address = from.address};
    host.user = from.ssh.user;
    host.port = from.ssh.port;
    host.identity_file = from.ssh.identity_file;
    host.known_hosts = from.ssh.known_hosts;
    host.work_dir = from.ssh.work_dir;
    host.program = from.ssh.program;
    entries.push_back({std::move(host), from.slots, from.devices});
  }
  return entries;
}

CapturedOutput probe_here(const std::vector<std::string>& words) {
  ProcessOptions options{.argv = words};
  options.argv[0] = (program_folder() / "assay").string();
  return capture(options, kProbeSeconds);
}

HostRunner runner_of(const CampaignSite& site) {
  if (site.launcher != LauncherKind::Ssh) {
    return [](const Host&, const std::vector<std::string>& words) { return probe_here(words); };
  }
  return [sockets = std::make_shared<SocketFolder>()](const Host& host, std::vector<std::string> words) {
    SshHost there(std::make_shared<SshConnection>(host, sockets), "preflight");
    words[0] = there.prepare({}).program.string();
    return there.connection().run(words, "looking at the host", "", kProbeSeconds);
  };
}

}  // namespace

CampaignServices campaign_services(const Plan& plan, const ExecuteOptions& options) {
  const CampaignSite site = site_of(plan.campaign, "plan.json");
  CampaignServices services;
  services.options = options;
  services.options.concurrency = site.concurrency;
  services.options.max_failures = site.max_failures;
  services.options.site = {.visible_devices = site.visible_devices,
                           .lease_s = site.lease_s,
                           .monitor_interval_s = site.monitor_interval_s,
                           .monitor_command = site.monitor_command,
                           .clear_caches = site.clear_caches};
  services.hosts = std::make_unique<HostPool>(pool_of(site));
  services.options.hosts = services.hosts.get();
  if (site.launcher == LauncherKind::Ssh) {
    services.launcher = std::make_unique<HostsLauncher>(std::make_unique<SshTransport>());
  } else if (site.launcher == LauncherKind::Slurm) {
    services.launcher = std::make_unique<SlurmLauncher>(
        SlurmOptions{.partition = site.slurm.partition, .account = site.slurm.account, .options = site.slurm.options});
  } else {
    services.launcher = std::make_unique<HostsLauncher>(std::make_unique<LocalTransport>());
  }
  return services;
}

void check_site(Context& context, const CampaignPlan& made) {
  const CampaignSite site = site_of(made.plan.campaign, "the campaign");
  // A partition's nodes are Slurm's to choose and to check.
  if (site.launcher == LauncherKind::Slurm) {
    int nnodes = 1;
    for (const Step& step : made.plan.steps) nnodes = std::max(nnodes, step.nnodes);
    if (const std::string problem = slurm_partition_problem(site.slurm.partition, nnodes); !problem.empty()) {
      throw InfrastructureError("nothing was started: " + problem);
    }
    return;
  }
  PreflightNeeds needs;
  for (const auto& [folder, files] : made.data) {
    needs.data.push_back({.path = folder, .sha256 = files, .check_hashes = true});
  }
  needs.min_free_bytes = kMinFreeBytes;
  if (site.master_port > 0) needs.master_ports = {site.master_port};
  needs.devices = site.hosts.empty() ? 1 : 0;
  for (const CampaignHost& host : site.hosts) needs.devices = std::max(needs.devices, host.slots);
  needs.device_command = site.device_command;
  needs.count_devices = [fixed = site.device_count](std::string_view output) {
    return fixed > 0 ? std::optional<int>(fixed) : device_count_of(output);
  };
  needs.hardware = made.hardware;
  needs.page_cache = site.clear_caches;
  std::vector<Host> hosts;
  for (const HostPool::Entry& entry : pool_of(site)) hosts.push_back(entry.host);
  if (site.launcher == LauncherKind::Local) hosts[0].work_dir = context.runs;
  const PreflightReport report = run_preflight(hosts, needs, runner_of(site));
  std::vector<std::string> errors;
  for (const PreflightProblem& problem : report.problems) {
    if (problem.severity == PreflightProblem::Severity::Warning) {
      context.console.warn(problem.text());
    } else {
      errors.push_back(problem.text());
    }
  }
  if (errors.empty()) return;
  throw InfrastructureError(fmt::format("nothing was started, {} problem{} in the way:\n  {}", errors.size(),
                                        errors.size() == 1 ? " is" : "s are", join(errors, "\n  ")));
}

}  // namespace assay
