#include "campaign_site.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "base/text.h"
#include "launch/hosts.h"
#include "launch/local_transport.h"
#include "launch/preflight.h"
#include "launch/slurm.h"
#include "launch/slurm_queue.h"
#include "launch/ssh_host.h"
#include "launch/ssh_transport.h"
#include "plan/campaign/campaign.h"
#include "plan/campaign/preflight_file.h"
#include "plan/vendors/vendor.h"

namespace assay {

namespace {

constexpr int64_t kMinFreeBytes = int64_t{1} << 30;
constexpr int kSlurmPatience = 20;  // seconds that a node may take to begin a small job

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

int most_nodes(const Plan& plan) {
  int nnodes = 1;
  for (const Step& step : plan.steps) nnodes = std::max(nnodes, step.nnodes);
  return nnodes;
}

// 0 where there is none any more: a run that goes on has it on its hosts.
int64_t folder_bytes(const std::filesystem::path& folder) {
  int64_t total = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, ignored)) {
    if (entry.is_regular_file()) total += static_cast<int64_t>(entry.file_size());
  }
  return total;
}

CapturedOutput probe_here(const Host&, std::vector<std::string> words, double time_limit_s) {
  words[0] = (program_folder() / "assay").string();
  return capture({.argv = std::move(words)}, time_limit_s);
}

// Connects to a host and brings assay there once, however often it is asked.
class SshProbe {
 public:
  CapturedOutput operator()(const Host& host, std::vector<std::string> words, double time_limit_s) const {
    const std::shared_ptr<Known> known = of(host);
    if (known->program.empty()) known->program = known->there.prepare({}).program.string();
    words[0] = known->program;
    return known->there.connection().run(words, "looking at the host", "", time_limit_s);
  }

 private:
  struct Known {  // used by one thread at a time: that which asks the host
    SshHost there;
    std::string program = {};
  };
  struct Shared {
    std::shared_ptr<SocketFolder> sockets = std::make_shared<SocketFolder>();
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<Known>> hosts;  // guarded by mutex
  };
  std::shared_ptr<Known> of(const Host& host) const {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    auto& known = shared_->hosts[host.name];
    if (!known) {
      known = std::make_shared<Known>(
          Known{.there = SshHost(std::make_shared<SshConnection>(host, shared_->sockets), "preflight")});
    }
    return known;
  }
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

// A small job on a node that was idle a moment ago.
HostRunner slurm_probe(const SlurmSettings& slurm) {
  return [slurm](const Host& host, const std::vector<std::string>& words, double time_limit_s) {
    ProcessOptions options{.argv = {"srun", "--quiet", "--nodes=1", "--ntasks=1", "--nodelist=" + host.name,
                                    fmt::format("--immediate={}", kSlurmPatience)}};
    if (!slurm.partition.empty()) options.argv.push_back("--partition=" + slurm.partition);
    if (!slurm.account.empty()) options.argv.push_back("--account=" + slurm.account);
    options.argv.push_back((program_folder() / "assay").string());
    options.argv.insert(options.argv.end(), words.begin() + 1, words.end());
    return capture(options, kSlurmPatience + time_limit_s);
  };
}

// Not a fault of the campaign: its jobs will wait in the queue.
bool is_taken_meanwhile(const CampaignSite& site, const PreflightProblem& problem) {
  return site.launcher == LauncherKind::Slurm && problem.what.find("Unable to allocate resources") != std::string::npos;
}

void check_partition(const CampaignSite& site, const Plan& plan) {
  const std::string problem = slurm_partition_problem(site.slurm.partition, most_nodes(plan));
  if (!problem.empty()) throw InfrastructureError("nothing was started: " + problem);
}

HostRunner runner_of(const CampaignSite& site) {
  if (site.launcher == LauncherKind::Slurm) return slurm_probe(site.slurm);
  return site.launcher == LauncherKind::Ssh ? HostRunner(SshProbe()) : HostRunner(probe_here);
}

// The devices that can come to be used: steps take the first free ones, so many at a time.
std::vector<NodePlace> places_of(const CampaignSite& site, const Plan& plan) {
  int most_ranks = 1;
  for (const Step& step : plan.steps) {
    if (step.on_hosts) most_ranks = std::max(most_ranks, step.nproc);
  }
  const auto most = static_cast<size_t>(most_ranks) * static_cast<size_t>(std::max(1, site.concurrency));
  std::vector<NodePlace> places;
  if (site.launcher == LauncherKind::Slurm) {  // devices are Slurm's to give
    for (std::string& node : idle_slurm_nodes(site.slurm.partition, most_nodes(plan))) {
      places.push_back({.host = {.name = std::move(node)}});
    }
    return places;
  }
  for (HostPool::Entry& entry : pool_of(site)) {
    std::vector<int> devices = entry.devices;
    for (int device = 0; entry.devices.empty() && device < entry.slots; ++device) devices.push_back(device);
    std::sort(devices.begin(), devices.end());
    devices.resize(std::min(devices.size(), most));
    places.push_back({.host = std::move(entry.host), .devices = std::move(devices)});
  }
  return places;
}

// The library that a native step opens, as it is named to the worker; "" when it names none.
std::string plugin_of(const Step& step) {
  const Json::json_pointer at("/config/Global/plugin");
  const auto config = step.files.find("config.json");
  if (step.argv[0] != "assay-worker" || config == step.files.end() || !config->second.contains(at)) return "";
  const Json& plugin = config->second.at(at);
  return plugin.is_string() ? plugin.get<std::string>() : "";
}

// What the commands of steps name: programs, and files by absolute paths. Data have their own check.
void need_commands(PreflightNeeds& needs, const CampaignPlan& made, const std::set<std::string>& running) {
  std::set<std::string> paths;
  for (const Step& step : made.plan.steps) {
    if (!step.on_hosts || step.argv.empty() || running.contains(step.name)) continue;
    const std::string& program = step.argv[0];
    const bool is_staged = program == "assay-worker" || (program.find('/') != std::string::npos && program[0] != '/');
    const auto path = step.env.find("PATH");
    if (!is_staged) needs.programs[program] = path == step.env.end() ? "" : path->second;
    for (size_t i = 1; i < step.argv.size(); ++i) {
      const std::string& word = step.argv[i];
      if (word.starts_with('/') && !made.data.contains(word)) paths.insert(word);
    }
    if (const std::string plugin = plugin_of(step); plugin.starts_with('/')) paths.insert(plugin);
  }
  needs.paths.assign(paths.begin(), paths.end());
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
                           .clear_caches = site.clear_caches,
                           .setup = site.setup,
                           .setup_env = site.setup_environment};
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

void stage_data(Context& context, const Plan& plan) {
  const CampaignSite site = site_of(plan.campaign, "plan.json");
  if (site.staged.empty()) return;
  const auto sockets = std::make_shared<SocketFolder>();
  const std::vector<HostPool::Entry> hosts = pool_of(site);
  for (const auto& [folder, hash] : site.staged) {
    context.console.info(
        fmt::format("data: {} to {} host{} ...", folder.string(), hosts.size(), hosts.size() == 1 ? "" : "s"));
    std::atomic<int> copies = 0;
    for_all(hosts.size(), [&, &folder = folder, &hash = hash](size_t i) {
      SshHost there(std::make_shared<SshConnection>(hosts[i].host, sockets), "staging");
      copies += there.stage_data(there.prepare({}), folder, hash);
    });
    context.console.info(copies > 0 ? fmt::format("data: copied to {} and checked", copies.load())
                                    : std::string("data: all have it"));
  }
}

Json check_site(Context& context, const CampaignPlan& made, const OwnRun& own) {
  const CampaignSite site = site_of(made.plan.campaign, "the campaign");
  if (site.launcher == LauncherKind::Slurm) check_partition(site, made.plan);
  PreflightNeeds needs;
  for (const auto& [folder, files] : made.data) {
    needs.data.push_back({.path = folder, .sha256 = files, .check_hashes = true});
  }
  needs.min_free_bytes = kMinFreeBytes;
  for (const CampaignSite::Staged& staged : site.staged) needs.min_free_bytes += folder_bytes(staged.path);
  if (site.master_port > 0 && own.running.empty()) needs.master_ports = {site.master_port};
  need_commands(needs, made, own.running);
  needs.own_run = own.folder.filename().string();
  needs.device_command = site.device_command;
  needs.count_devices = [fixed = site.device_count](std::string_view output) {
    return fixed > 0 ? std::optional<int>(fixed) : device_count_of(output);
  };
  needs.hardware = made.hardware;
  needs.page_cache = site.clear_caches;
  needs.versions = made.versions;
  std::vector<NodePlace> places = places_of(site, made.plan);
  const std::filesystem::path runs = own.folder.empty() ? context.runs : own.folder.parent_path();
  for (NodePlace& place : places) {  // hosts that share the folder of runs
    if (site.launcher != LauncherKind::Ssh) place.host.work_dir = std::filesystem::absolute(runs);
  }
  if (places.empty())
    context.console.warn("no node of the partition is idle: data, disk and programs were not looked at");
  const PreflightReport report = run_preflight(places, needs, runner_of(site));
  std::vector<std::string> errors;
  for (const PreflightProblem& problem : report.problems) {
    if (problem.severity == PreflightProblem::Severity::Warning || is_taken_meanwhile(site, problem)) {
      context.console.warn(problem.text());
    } else {
      errors.push_back(problem.text());
    }
  }
  Json versions = Json::object();
  for (const auto& [host, answer] : report.hosts) versions[host] = answer.value("versions", Json::object());
  if (errors.empty()) return versions;
  throw InfrastructureError(fmt::format("nothing was started, {} problem{} in the way:\n  {}", errors.size(),
                                        errors.size() == 1 ? " is" : "s are", join(errors, "\n  ")));
}

void check_site_again(Context& context, const RunFolder& folder, const ExecuteOptions& options) {
  if (folder.plan().campaign.is_null()) return;
  const std::filesystem::path file = folder.path() / kPreflightFile;
  if (!std::filesystem::exists(file)) {
    context.console.info(
        fmt::format("the run has no {} (an earlier assay made it): its hosts are not looked at", kPreflightFile));
    return;
  }
  const CampaignPlan whole = campaign_plan_of(folder.plan(), read_json_file(file), file.string());
  const CampaignServices services = campaign_services(folder.plan(), options);
  const LeftSteps left(folder, *services.launcher, services.options);
  if (left.to_begin().empty()) return;
  const std::set<std::string> running = left.running();
  check_site(context, rest_of(whole, left.to_begin(), running), {.folder = folder.path(), .running = running});
}

}  // namespace assay
