#include "frontends/campaign/campaign_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/file_set.h"
#include "base/text.h"
#include "frontends/log_patterns.h"
#include "frontends/native/native_chain.h"
#include "launch/launchers.h"
#include "layout/run_layout.h"
#include "plan/entry.h"
#include "record/keys.h"
#include "vendor/vendor.h"

namespace assay {

namespace {

constexpr size_t kLongestName = 80;
constexpr std::string_view kStepFolder = "{run}/STEP";  // the folder of a step is known when its number is

std::string step_name(const CaseKey& key, std::set<std::string>& taken) {
  std::string name;
  for (const char c : fmt::format("{}-{}-{}-{}x{}", key.model, key.framework, key.hardware, key.nnodes, key.nproc)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    name += plain ? c : '_';
  }
  name.resize(std::min(name.size(), kLongestName));
  std::string unique = name;
  for (int i = 2; !taken.insert(unique).second; ++i) unique = fmt::format("{}-{}", name, i);
  return unique;
}

// Where a command finds its data. Data that is copied to hosts lies beside the run folder, and a command stands
// elsewhere.
std::string data_for_command(const ResolvedCase& resolved) {
  if (!resolved.data.path) return "";
  const std::string path = resolved.data.path->string();
  return resolved.data.path->is_relative() ? layout::in_run_folder(path) : path;
}

// The command of a case of another framework. A word that is a file of the case's folder means that file.
std::vector<std::string> foreign_command(const ResolvedCase& resolved, const std::filesystem::path& folder,
                                         const std::string& code) {
  const CaseKey& key = resolved.key;
  std::map<std::string, std::string> values = {{"data", data_for_command(resolved)},
                                               {"vendor", resolved.vendor},
                                               {"hardware", key.hardware},
                                               {"nnodes", std::to_string(key.nnodes)},
                                               {"nproc", std::to_string(key.nproc)},
                                               {"model", key.model},
                                               {"case_dir", layout::in_run_folder(code)},
                                               {"config", fmt::format("{}/{}", kStepFolder, layout::kConfig)},
                                               {"output", fmt::format("{}/{}", kStepFolder, layout::kOutput)}};
  for (const Value::Entry& entry : resolved.config.entries()) {
    if (entry.value.is_map() || entry.value.is_list()) continue;
    const Value& value = entry.value;
    values.insert({entry.key, value.is_string() ? value.as_string() : to_line(value.to_json())});
  }
  std::vector<std::string> words = expand_entry(resolved.entry, values);
  for (std::string& word : words) {
    const std::filesystem::path path(word);
    const bool is_own = !word.empty() && !path.is_absolute() && !word.starts_with('-') &&
                        std::filesystem::is_regular_file(folder / path);
    if (is_own) word = layout::in_run_folder(code) + "/" + word;
  }
  return words;
}

class Planner {
 public:
  Planner(const Campaign& campaign, const std::filesystem::path& home)
      : campaign_(campaign),
        home_(home),
        launcher_(launcher_named(campaign.site.launcher)),
        vendor_(read_vendor(home, campaign.site.vendor)) {
    out_.plan.title = campaign.title;
  }

  PlannedRun run() {
    add_setup();
    std::vector<std::string> problems;
    for (const CampaignCase& one : campaign_.cases) {
      try {
        add_case(one);
      } catch (const ConfigError& error) {
        problems.push_back(error.what());
      }
    }
    if (!problems.empty()) throw ConfigError(join(problems, "\n"));
    Site site = campaign_.site;
    site.settings.visible_devices = hardware_->visible_devices.value_or("");
    site.settings.monitor_command = hardware_->monitor_command;
    site.device_command = hardware_->device_command;
    site.device_count = hardware_->device_count.value_or(0);
    site.peak_flops = hardware_->peak_flops;
    site.staged = staged_;
    if (vendor_.setup && !setup_is_step()) {
      site.settings.setup = {setup_program()};
      site.settings.setup_env = environment("");
    }
    for (Host& host : site.hosts) {
      if (host.slots == 0) host.slots = most_ranks_;
    }
    out_.plan.site = std::move(site);
    out_.plan.validate();
    return std::move(out_);
  }

 private:
  // Hosts that a scheduler chooses are known when their jobs run.
  bool setup_is_step() const { return !launcher_.chooses_hosts(); }
  std::string setup_program() const { return layout::code_path(fmt::format("vendor-{}/setup", campaign_.site.vendor)); }

  // Once on every host, before its first case.
  void add_setup() {
    if (!vendor_.setup) return;
    out_.code[setup_program()] = *vendor_.setup;
    if (!setup_is_step()) return;
    Step step;
    step.name = "setup";
    step.command.argv = {setup_program()};
    step.command.env = environment("");
    step.ranks.on_hosts = true;
    step.ranks.nnodes = static_cast<int>(std::max<size_t>(campaign_.site.hosts.size(), 1));
    step.limits.retries = campaign_.retries;
    step.limits.time_limit_s = campaign_.time_limit_s;
    step.limits.stall_limit_s = campaign_.stall_limit_s;
    out_.plan.steps.push_back(std::move(step));
  }

  std::map<std::string, std::string> environment(const std::string& model) const {
    std::map<std::string, std::string> all = campaign_.environment;
    for (const auto& [name, value] : model.empty() ? vendor_.environment : vendor_environment(vendor_, model)) {
      all.insert({name, value});
    }
    return all;
  }

  // All devices of a campaign are of one kind: one variable, one command.
  void take_hardware(const CampaignCase& one) {
    const VendorHardware* found = vendor_.find(one.key.hardware);
    if (!found) {
      std::vector<std::string> known;
      for (const auto& [name, hardware] : vendor_.hardware) known.push_back(name);
      throw ConfigError(fmt::format("{}: vendor {} has no hardware '{}'{}", one.place, campaign_.site.vendor,
                                    one.key.hardware, did_you_mean(one.key.hardware, known)));
    }
    if (!out_.hardware.empty() && out_.hardware != one.key.hardware) {
      throw ConfigError(
          fmt::format("{}: hardware '{}' beside '{}' of {}: the devices of a campaign are of one kind; "
                      "write a campaign of its own for it",
                      one.place, one.key.hardware, out_.hardware, hardware_place_));
    }
    if (out_.hardware.empty()) hardware_place_ = one.place;
    out_.hardware = one.key.hardware;
    hardware_ = found;
    const int device_count = found->device_count.value_or(0);
    if (device_count > 0 && one.key.nproc > device_count) {
      throw ConfigError(fmt::format("{}: {} ranks per host, and a host has {} devices {}", one.place, one.key.nproc,
                                    device_count, one.key.hardware));
    }
  }

  ResolvedCase resolved(const CampaignCase& one) const {
    Value values = one.settings;
    if (!one.data.empty()) {
      const Origin place = one.settings.origin();
      Value data = Value::map(place);
      data.set("path", Value::string(one.data, place));
      values.set("data", std::move(data));
    }
    try {
      return resolve_case({.home = home_,
                           .key = one.key,
                           .vendor = campaign_.site.vendor,
                           .division = division_of(campaign_.site.division),
                           .plan_values = std::move(values)});
    } catch (const UsageError& error) {
      throw ConfigError(fmt::format("{}: {}", one.place, error.what()));
    } catch (const ConfigError& error) {
      const std::string what = error.what();
      throw ConfigError(what.find(one.place) == 0 ? what : fmt::format("{}: {}", one.place, what));
    }
  }

  // The case with its data where the hosts will have it. What is copied is checked here, before.
  ResolvedCase resolved_with_staged(const CampaignCase& one, const ResolvedCase& here) {
    if (!here.data.path) throw ConfigError(fmt::format("{}: stage: the case has no data", one.place));
    FileSet files{.root = *here.data.path};
    try {
      files.add_all();
    } catch (const DataError& error) {
      throw ConfigError(fmt::format("{}: stage: {}", one.place, error.what()));
    }
    for (const auto& [name, hash] : here.data.sha256) {
      const auto found = files.files.find(name);
      if (found != files.files.end() && found->second == hash) continue;
      throw ConfigError(fmt::format("{}: stage: {} {}; put the right data there", one.place,
                                    (files.root / name).string(),
                                    found == files.files.end() ? "is missing" : "is not the file that the case names"));
    }
    const Site::Staged staged{files.root, files.hash()};
    if (std::find(staged_.begin(), staged_.end(), staged) == staged_.end()) staged_.push_back(staged);
    CampaignCase there = one;
    there.data = staged_folder(staged.hash);
    return resolved(there);
  }

  void add_case(const CampaignCase& one) {
    take_hardware(one);
    ResolvedCase as_resolved = resolved(one);
    most_ranks_ = std::max(most_ranks_, one.key.nproc);
    const bool is_staged = one.stage && !launcher_.shares_files();
    if (is_staged) {
      as_resolved = resolved_with_staged(one, as_resolved);
    } else if (as_resolved.data.path) {
      auto& files = out_.data[as_resolved.data.path->string()];
      files.insert(as_resolved.data.sha256.begin(), as_resolved.data.sha256.end());
    }
    const std::string name = step_name(one.key, names_);
    std::vector<std::string> rounds;
    for (int round = 1; round <= one.key.repeat; ++round) {
      Step step = as_resolved.is_native() ? native_step(as_resolved) : foreign_step(as_resolved);
      step.name = one.key.repeat == 1 ? name : fmt::format("{}-r{}", name, round);
      finish_step(step, as_resolved, one, round);
      out_.uses[step.name] = use_of(as_resolved);
      rounds.push_back(step.name);
      out_.plan.steps.push_back(std::move(step));
    }
    if (as_resolved.division == Division::Closed) add_judgement(name, rounds, as_resolved);
  }

  // Data that is staged is checked by whoever copies it.
  PlannedRun::Use use_of(const ResolvedCase& as_resolved) const {
    PlannedRun::Use use;
    const std::string folder = as_resolved.data.path ? as_resolved.data.path->string() : "";
    if (out_.data.contains(folder)) use.data = folder;
    if (as_resolved.is_native()) return use;
    const Json config = as_resolved.config_json();
    if (!config.contains("versions")) return use;
    for (const auto& [name, command] : config.at("versions").items()) use.versions.push_back(name);
    return use;
  }

  // A library that is named by its path goes along with the run, so that hosts need not have it at that path. One that
  // is not here must be there, and hosts are asked for it.
  void take_plugin(Step& step) {
    const Json::json_pointer at("/config/Global/plugin");
    Json& config = step.files.inputs.at(layout::kConfig);
    if (!config.contains(at) || !config.at(at).is_string()) return;
    const std::filesystem::path path = config.at(at).get<std::string>();
    std::error_code unknown;
    if (!path.is_absolute() || !std::filesystem::is_regular_file(path, unknown)) return;
    const auto [known, is_new] = plugins_.insert({path.string(), ""});
    if (is_new)
      known->second = layout::code_path(fmt::format("plugin-{}/{}", plugins_.size(), path.filename().string()));
    out_.code[known->second] = path;
    step.command.code = {known->second};
    config[at] = known->second;
  }

  Step native_step(const ResolvedCase& as_resolved) {
    Step step = train_plan(as_resolved).steps[0];
    step.kind = StepKind::Train;
    take_plugin(step);
    if (!launcher_.shares_files()) step.files.outputs.clear();  // they stay there unless `collect` names them
    return step;
  }

  // Commands that print the versions of what the case uses; a name means the same in all cases.
  void take_versions(const Json& versions, const std::string& file) {
    try {
      for (const auto& [name, argv] : versions.get<std::map<std::string, std::vector<std::string>>>()) {
        const auto [known, is_new] = out_.versions.insert({name, argv});
        if (argv.empty() || known->second != argv) {
          throw ConfigError(fmt::format("{}: config.versions.{}: {}", file, name,
                                        argv.empty() ? "the command is empty" : "another case asks for it otherwise"));
        }
      }
    } catch (const Json::exception&) {
      throw ConfigError(
          fmt::format("{}: config.versions: each is a command as a list: torch: [python3, -c, ...]", file));
    }
  }

  Step foreign_step(const ResolvedCase& as_resolved) {
    const CaseFile file = *find_case(home_, as_resolved.key.model);
    const std::filesystem::path folder = file.path.parent_path();
    const std::string code = layout::code_path(file.model);
    out_.code[code] = folder;
    Step step;
    step.kind = StepKind::Train;
    step.command.has_work_folder = true;
    step.command.code = {code};
    try {
      step.command.argv = foreign_command(as_resolved, folder, code);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}", file.path.string(), error.what()));
    }
    Json config = as_resolved.config_json();
    if (const Value* patterns = as_resolved.config.child("patterns"); patterns && !patterns->is_null()) {
      step.patterns = read_log_patterns(*patterns);
    }
    config.erase("patterns");
    if (config.contains("versions")) {
      take_versions(config.at("versions"), file.path.string());
      config.erase("versions");
    }
    step.files.inputs = {{layout::kConfig, std::move(config)}};
    return step;
  }

  void finish_step(Step& step, const ResolvedCase& as_resolved, const CampaignCase& one, int round) const {
    const std::string folder = out_.plan.next_folder(step.name);
    const std::string planned_alone = layout::step_folder(1, "train") + "/";  // as train_plan() names it
    for (std::string& word : step.command.argv) {
      for (size_t at = 0; (at = word.find(kStepFolder, at)) != std::string::npos;) {
        word.replace(at, kStepFolder.size(), layout::in_run_folder(folder));
      }
      if (word.starts_with(planned_alone)) word = folder + word.substr(planned_alone.size() - 1);
    }
    step.measures.key = one.key.text();
    step.measures.round = round;
    step.ranks.on_hosts = true;
    step.ranks.nnodes = one.key.nnodes;
    step.ranks.node_rank = 0;
    step.ranks.nproc = one.key.nproc;
    step.ranks.framework = as_resolved.key.framework_name();
    for (const auto& [name, value] : environment(one.key.model)) step.command.env.insert({name, value});
    if (!as_resolved.is_native()) {
      const std::string own = layout::in_run_folder(folder);
      step.command.env["ASSAY_CASE_DIR"] = layout::in_run_folder(step.command.code.at(0));
      step.command.env["ASSAY_CASE_CONFIG"] = own + "/" + layout::kConfig;
      step.command.env["ASSAY_CASE_OUTPUT"] = own + "/" + layout::kOutput;
      if (as_resolved.data.path) step.command.env["ASSAY_CASE_DATA"] = data_for_command(as_resolved);
    }
    if (campaign_.site.master_port > 0) step.command.env["MASTER_PORT"] = std::to_string(campaign_.site.master_port);
    step.limits.retries = campaign_.retries;
    step.limits.time_limit_s = one.time_limit_s;
    step.limits.stall_limit_s = one.stall_limit_s;
    step.files.collect = campaign_.collect;
    if (vendor_.setup && setup_is_step()) step.needs.push_back("setup");
  }

  // Every round of a case as it is published reaches its target.
  void add_judgement(const std::string& name, const std::vector<std::string>& rounds, const ResolvedCase& as_resolved) {
    Step verify;
    verify.name = name + "-target";
    verify.kind = StepKind::Verify;
    verify.needs = rounds;
    for (const std::string& round : rounds) {
      verify.checks.push_back(
          Check::parse({{"type", "target"},
                        {"name", fmt::format("{}: {} reaches its target", round, as_resolved.target.metric)},
                        {"records", out_.plan.folder(round) + "/" + layout::records_file(0)},
                        {"key", keys::kFinalAccuracy},
                        {"goal", as_resolved.target.goal == Goal::Maximize ? "maximize" : "minimize"},
                        {"value", as_resolved.target.value}}));
    }
    out_.plan.steps.push_back(std::move(verify));
  }

  const Campaign& campaign_;
  const std::filesystem::path home_;
  const LauncherKind& launcher_;
  const VendorInfo vendor_;
  PlannedRun out_;
  std::set<std::string> names_;
  std::string hardware_place_;                // of the first case
  const VendorHardware* hardware_ = nullptr;  // of all cases
  int most_ranks_ = 0;
  std::vector<Site::Staged> staged_;
  std::map<std::string, std::string> plugins_;  // path here -> in the run folder
};

}  // namespace

PlannedRun make_campaign_plan(const Campaign& campaign, const std::filesystem::path& home) {
  return Planner(campaign, home).run();
}

}  // namespace assay
