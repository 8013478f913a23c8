#include "preflight/site_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "execute/run_services.h"
#include "launch/launchers.h"
#include "layout/run_layout.h"
#include "preflight/preflight_file.h"
#include "site/site.h"
#include "vendor/vendor.h"

namespace assay {

namespace {

constexpr int64_t kMinFreeBytes = int64_t{1} << 30;

SiteDemand demand_of(const Plan& plan) {
  SiteDemand most;
  for (const Step& step : plan.steps) {
    most.nnodes = std::max(most.nnodes, step.ranks.nnodes);
    if (step.ranks.on_hosts) most.nproc = std::max(most.nproc, step.ranks.nproc);
  }
  return most;
}

// 0 where the folder is gone: a resumed run has the data on its hosts.
int64_t folder_bytes(const std::filesystem::path& folder) {
  int64_t total = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, ignored)) {
    if (entry.is_regular_file()) total += static_cast<int64_t>(entry.file_size());
  }
  return total;
}

// The library that a native step opens, as it is named to the worker; "" when it names none.
std::string plugin_of(const Step& step) {
  const Json::json_pointer at("/config/Global/plugin");
  const auto config = step.files.inputs.find(layout::kConfig);
  if (step.command.argv[0] != "assay-worker" || config == step.files.inputs.end() || !config->second.contains(at))
    return "";
  const Json& plugin = config->second.at(at);
  return plugin.is_string() ? plugin.get<std::string>() : "";
}

// What the commands of steps name: programs, and files by absolute paths. Data have their own check.
void add_commands(PreflightNeeds& needs, const PlannedRun& planned, const std::set<std::string>& running) {
  std::set<std::string> paths;
  for (const Step& step : planned.plan.steps) {
    if (!step.ranks.on_hosts || step.command.argv.empty() || running.contains(step.name)) continue;
    const std::string& program = step.command.argv[0];
    const bool is_staged = program == "assay-worker" || (program.find('/') != std::string::npos && program[0] != '/');
    const auto path = step.command.env.find("PATH");
    if (!is_staged) needs.programs[program] = path == step.command.env.end() ? "" : path->second;
    for (size_t i = 1; i < step.command.argv.size(); ++i) {
      const std::string& word = step.command.argv[i];
      if (word.starts_with('/') && !planned.data.contains(word)) paths.insert(word);
    }
    if (const std::string plugin = plugin_of(step); plugin.starts_with('/')) paths.insert(plugin);
  }
  needs.paths.assign(paths.begin(), paths.end());
}

// The hosts that are asked, with the folder that each writes to.
std::vector<NodePlace> places_to_ask(const LauncherKind& launcher, const Plan& plan,
                                     const std::filesystem::path& runs) {
  std::vector<NodePlace> places = launcher.places(*plan.site, demand_of(plan));
  for (NodePlace& place : places) {
    if (launcher.shares_files()) place.host.work_dir = std::filesystem::absolute(runs);
  }
  return places;
}

}  // namespace

PreflightNeeds needs_of(const PlannedRun& planned, const OwnRun& own) {
  const Site& site = planned.plan.site.value();
  PreflightNeeds needs;
  for (const auto& [folder, files] : planned.data) {
    needs.data.push_back({.path = folder, .sha256 = files, .check_hashes = true});
  }
  needs.min_free_bytes = kMinFreeBytes;
  for (const Site::Staged& staged : site.staged) needs.min_free_bytes += folder_bytes(staged.path);
  if (site.master_port > 0 && own.running.empty()) needs.master_ports = {site.master_port};
  add_commands(needs, planned, own.running);
  needs.own_run = own.folder.filename().string();
  needs.device_command = site.device_command;
  needs.count_devices = [fixed = site.device_count](std::string_view output) {
    return fixed > 0 ? std::optional<int>(fixed) : device_count_of(output);
  };
  needs.hardware = planned.hardware;
  needs.page_cache = site.settings.clear_caches;
  needs.versions = planned.versions;
  return needs;
}

Json check_planned_run(const PlannedRun& planned, const std::filesystem::path& runs, Console& console,
                       const OwnRun& own) {
  if (planned.check_here) planned.check_here();
  Json versions = Json::object();
  if (!planned.plan.site) return versions;
  const Site& site = *planned.plan.site;
  const LauncherKind& launcher = launcher_named(site.launcher);
  launcher.check(site, demand_of(planned.plan));
  const std::vector<NodePlace> places =
      places_to_ask(launcher, planned.plan, own.folder.empty() ? runs : own.folder.parent_path());
  if (places.empty()) console.warn("no node of the partition is idle: data, disk and programs were not looked at");
  const PreflightReport report = run_preflight(places, needs_of(planned, own), launcher.probe(site));
  std::vector<std::string> errors;
  for (const PreflightProblem& problem : report.problems) {
    if (problem.severity == PreflightProblem::Severity::Warning || launcher.is_temporary(problem.what)) {
      console.warn(problem.text());
    } else {
      errors.push_back(problem.text());
    }
  }
  for (const auto& [host, answer] : report.hosts) versions[host] = answer.value("versions", Json::object());
  if (errors.empty()) return versions;
  throw InfrastructureError(fmt::format("nothing was started, preflight found {} problem{}:\n  {}", errors.size(),
                                        errors.size() == 1 ? "" : "s", join(errors, "\n  ")));
}

void check_resumed_run(const RunFolder& folder, const ExecuteOptions& options, Console& console) {
  if (!folder.plan().site) return;
  const std::filesystem::path file = folder.path() / layout::kPreflight;
  if (!std::filesystem::exists(file)) {
    console.info(
        fmt::format("the run has no {} (an earlier assay made it): its hosts are not looked at", layout::kPreflight));
    return;
  }
  const PlannedRun whole = planned_run_of(folder.plan(), read_json_file(file), file.string());
  const RunServices services = run_services(folder.plan(), options);
  const ResumableSteps steps(folder, *services.launcher, services.options);
  if (steps.to_begin().empty()) return;
  const std::set<std::string> running = steps.running();
  check_planned_run(rest_of(whole, steps.to_begin(), running), {}, console,
                    {.folder = folder.path(), .running = running});
}

}  // namespace assay
