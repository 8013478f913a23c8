#include "plan/plan.h"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/time.h"
#include "layout/run_layout.h"

namespace assay {

namespace {

constexpr std::array<std::string_view, 6> kKinds = {"train", "evaluate", "export", "infer", "command", "verify"};
constexpr const char* kSchema = "assay/plan-v1";

bool good_name(std::string_view name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  return !name.empty() && name.size() <= 100 && name.find_first_not_of(kAllowed) == std::string_view::npos;
}

// Files and outputs stay inside the step's folder.
bool good_file(const std::string& name) {
  const std::filesystem::path path(name);
  if (name.empty() || path.is_absolute()) return false;
  return std::none_of(path.begin(), path.end(), [](const auto& part) { return part == ".."; });
}

template <typename T>
Json json_list(const std::vector<T>& items) {
  Json out = Json::array();
  for (const T& item : items) out.push_back(item.to_json());
  return out;
}

// What has its usual value is left out: plans of earlier versions keep their hash.
void add_unusual(const Step& step, Json& out) {
  const StepRanks& ranks = step.ranks;
  if (ranks.nnodes != 1) {
    out["nnodes"] = ranks.nnodes;
    out["node_rank"] = ranks.node_rank;
  }
  if (ranks.num_servers != 0) out["num_servers"] = ranks.num_servers;
  if (step.limits.max_restarts != 0) out["max_restarts"] = step.limits.max_restarts;
  if (ranks.on_hosts) out["on_hosts"] = true;
  if (step.limits.retries != 0) out["retries"] = step.limits.retries;
  if (step.limits.stall_limit_s) out["stall_limit_s"] = *step.limits.stall_limit_s;
  if (!step.measures.key.empty()) out["case"] = step.measures.key;
  if (step.measures.round != 0) out["round"] = step.measures.round;
  if (!ranks.framework.empty()) out["framework"] = ranks.framework;
  if (step.command.has_work_folder) out["work_folder"] = true;
  if (!step.command.code.empty()) out["code"] = step.command.code;
  if (!step.files.collect.empty()) out["collect"] = step.files.collect;
  if (!step.patterns.empty()) out["patterns"] = json_list(step.patterns);
}

Json to_json(const Step& step) {
  Json out = {{"name", step.name}, {"kind", kind_name(step.kind)}, {"needs", step.needs}};
  if (!step.files.discard.empty()) out["discard"] = step.files.discard;
  if (step.kind == StepKind::Verify || !step.checks.empty()) out["checks"] = json_list(step.checks);
  if (step.kind == StepKind::Verify) return out;
  add_unusual(step, out);
  out["argv"] = step.command.argv;
  out["env"] = step.command.env;
  out["nproc"] = step.ranks.nproc;
  out["time_limit_s"] = step.limits.time_limit_s ? Json(*step.limits.time_limit_s) : Json(nullptr);
  out["files"] = step.files.inputs;
  out["outputs"] = step.files.outputs;
  return out;
}

void read_ranks_and_limits(const Json& value, Step& step) {
  step.ranks.nproc = value.at("nproc").get<int>();
  step.ranks.nnodes = value.value("nnodes", 1);
  step.ranks.node_rank = value.value("node_rank", 0);
  step.ranks.num_servers = value.value("num_servers", 0);
  step.ranks.on_hosts = value.value("on_hosts", false);
  step.ranks.framework = value.value("framework", "");
  step.limits.max_restarts = value.value("max_restarts", 0);
  step.limits.retries = value.value("retries", 0);
  if (value.contains("stall_limit_s")) step.limits.stall_limit_s = value.at("stall_limit_s").get<double>();
  if (!value.at("time_limit_s").is_null()) step.limits.time_limit_s = value.at("time_limit_s").get<double>();
}

// Checks and patterns, whose errors do not know the step.
void read_typed_parts(const Json& value, Step& step) {
  try {
    if (step.kind == StepKind::Verify || value.contains("checks")) {
      for (const Json& check : value.at("checks")) step.checks.push_back(Check::parse(check));
    }
    for (const Json& pattern : value.value("patterns", Json::array())) {
      step.patterns.push_back(LogPattern::parse(pattern, LogPattern::OtherKeys::Ignore));
    }
  } catch (const Error& error) {
    throw DataError(fmt::format("step '{}': {}", step.name, error.what()));
  }
}

Step step_of(const Json& value) {
  Step step;
  step.name = value.at("name").get<std::string>();
  step.kind = step_kind_of(value.at("kind").get<std::string>());
  step.needs = value.at("needs").get<std::vector<std::string>>();
  step.files.discard = value.value("discard", step.files.discard);
  read_typed_parts(value, step);
  if (step.kind == StepKind::Verify) return step;
  read_ranks_and_limits(value, step);
  step.measures = {.key = value.value("case", ""), .round = value.value("round", 0)};
  step.command.code = value.value("code", step.command.code);
  step.command.has_work_folder = value.value("work_folder", false);
  step.command.argv = value.at("argv").get<std::vector<std::string>>();
  step.command.env = value.at("env").get<std::map<std::string, std::string>>();
  step.files.collect = value.value("collect", step.files.collect);
  step.files.inputs = value.at("files").get<std::map<std::string, Json>>();
  step.files.outputs = value.at("outputs").get<std::vector<std::string>>();
  return step;
}

using Complain = std::function<void(const std::string&)>;

void check_command(const Step& step, const Complain& wrong) {
  const StepRanks& ranks = step.ranks;
  const StepLimits& limits = step.limits;
  if (step.command.argv.empty() || step.command.argv[0].empty()) wrong("has no command");
  if (ranks.nproc < 1) wrong(fmt::format("{} processes", ranks.nproc));
  if (ranks.node_rank < 0 || ranks.node_rank >= ranks.nnodes) {
    wrong(fmt::format("node {} of {} nodes", ranks.node_rank, ranks.nnodes));
  }
  if (ranks.num_servers < 0 || ranks.num_servers >= ranks.nproc || (ranks.num_servers > 0 && ranks.nnodes > 1)) {
    wrong(fmt::format("{} parameter servers among {} processes on {} hosts; they need a trainer, and one host",
                      ranks.num_servers, ranks.nproc, ranks.nnodes));
  }
  if (ranks.on_hosts && ranks.num_servers > 0) wrong("parameter servers are started on one host, not by a campaign");
  if (limits.max_restarts < 0) wrong(fmt::format("{} restarts", limits.max_restarts));
  if (limits.retries < 0) wrong(fmt::format("{} retries", limits.retries));
  if (limits.time_limit_s && !(*limits.time_limit_s > 0)) wrong("its time limit is not above 0 s");
  if (limits.stall_limit_s && !(*limits.stall_limit_s > 0)) wrong("its stall limit is not above 0 s");
}

void check_files(const Step& step, const Complain& wrong) {
  for (const auto& [name, content] : step.files.inputs) {
    if (!good_file(name)) wrong(fmt::format("file '{}' is outside its folder", name));
  }
  for (const std::string& name : step.files.discard) {
    if (!good_file(name) || !layout::is_in(name, layout::kSteps)) {
      wrong(fmt::format("'{}', which it discards, is not in the folder of a step", name));
    }
  }
  for (const std::string& name : step.command.code) {
    if (!good_file(name) || !layout::is_in(name, layout::kCode)) {
      wrong(fmt::format("'{}' is not in the folder {}", name, layout::kCode));
    }
  }
  for (const std::string& name : step.files.collect) {
    if (!good_file(name)) wrong(fmt::format("'{}', which it collects, is outside its folder", name));
  }
  for (const std::string& name : step.files.outputs) {
    if (!good_file(name)) wrong(fmt::format("output '{}' is outside its folder", name));
  }
}

std::string step_text(const Step& step, size_t number) {
  const StepRanks& ranks = step.ranks;
  const StepLimits& limits = step.limits;
  std::string out = fmt::format("\n{}. {} ({})\n", number, step.name, kind_name(step.kind));
  if (!step.needs.empty()) out += fmt::format("   needs    {}\n", join(step.needs, ", "));
  if (!step.command.argv.empty()) out += fmt::format("   runs     {}\n", shell_line(step.command.argv));
  if (ranks.on_hosts) {
    out += fmt::format("   ranks    {} on {} host{}\n", ranks.nproc, ranks.nnodes, ranks.nnodes == 1 ? "" : "s each");
  } else if (ranks.nnodes > 1) {
    out += fmt::format("   ranks    {} to {} of {}, on node {} of {}\n", ranks.first_rank(),
                       ranks.first_rank() + ranks.nproc - 1, ranks.world_size(), ranks.node_rank, ranks.nnodes);
  } else if (ranks.nproc > 1) {
    out += fmt::format("   ranks    {}\n", ranks.nproc);
  }
  if (ranks.num_servers > 0) {
    out += fmt::format("   servers  {} of them, for {} trainers\n", ranks.num_servers, ranks.nproc - ranks.num_servers);
  }
  if (limits.max_restarts > 0) out += fmt::format("   restarts at most {}\n", limits.max_restarts);
  for (const auto& [name, variable] : step.command.env) out += fmt::format("   with     {}={}\n", name, variable);
  if (limits.time_limit_s) out += fmt::format("   within   {}\n", duration_text(*limits.time_limit_s));
  if (limits.stall_limit_s) out += fmt::format("   silent   at most {}\n", duration_text(*limits.stall_limit_s));
  if (limits.retries > 0) out += fmt::format("   retries  at most {}, of infrastructure failures\n", limits.retries);
  if (!step.files.collect.empty()) out += fmt::format("   collects {}\n", join(step.files.collect, ", "));
  for (const Check& check : step.checks) out += fmt::format("   checks   {}\n", to_line(check.to_json()));
  for (const std::string& output : step.files.outputs) out += fmt::format("   writes   {}\n", output);
  for (const std::string& path : step.files.discard) out += fmt::format("   discards {}\n", path);
  return out;
}

}  // namespace

std::vector<std::string> StepCommand::code_folders() const {
  std::vector<std::string> words = argv;
  words.insert(words.end(), code.begin(), code.end());
  std::vector<std::string> out;
  for (const std::string& word : words) {
    if (layout::is_in(word, layout::kCode)) out.push_back(word.substr(0, word.find('/', std::size(layout::kCode))));
  }
  return out;
}

std::string_view kind_name(StepKind kind) { return kKinds[static_cast<size_t>(kind)]; }

StepKind step_kind_of(std::string_view name) {
  const auto found = std::find(kKinds.begin(), kKinds.end(), name);
  if (found == kKinds.end()) throw DataError(fmt::format("'{}' is not a kind of step", name));
  return static_cast<StepKind>(found - kKinds.begin());
}

void Plan::validate() const {
  std::set<std::string> seen;
  for (const Step& step : steps) {
    const Complain wrong = [&](const std::string& what) {
      throw DataError(fmt::format("step '{}': {}", step.name, what));
    };
    if (!good_name(step.name)) wrong("a step's name has letters, digits, '-' and '_', at most 100");
    if (seen.count(step.name)) wrong("there are two steps of this name");
    for (const std::string& need : step.needs) {
      if (!seen.count(need)) wrong(fmt::format("needs '{}', which is not an earlier step", need));
    }
    if (step.kind != StepKind::Verify) {
      check_command(step, wrong);
    } else if (step.checks.empty()) {
      wrong("has nothing to check");
    }
    check_files(step, wrong);
    seen.insert(step.name);
  }
}

const Step& Plan::step(std::string_view name) const {
  for (const Step& step : steps) {
    if (step.name == name) return step;
  }
  throw InternalError(fmt::format("no step '{}' in the plan", name));
}

std::string Plan::folder(std::string_view step_name) const {
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].name == step_name) return layout::step_folder(i + 1, step_name);
  }
  throw InternalError(fmt::format("no step '{}' in the plan", step_name));
}

std::string Plan::next_folder(std::string_view step_name) const {
  return layout::step_folder(steps.size() + 1, step_name);
}

std::string Plan::hash() const { return plan_hash(assay::to_json(*this)); }

std::string plan_hash(const Json& plan) { return sha256(to_line(plan)); }

Json to_json(const Plan& plan) {
  Json steps = Json::array();
  for (const Step& step : plan.steps) steps.push_back(to_json(step));
  Json out = {{"schema", kSchema}, {"title", plan.title}, {"case", plan.case_key}, {"steps", steps}};
  if (plan.site) out["campaign"] = to_json(*plan.site);
  return out;
}

Plan plan_of(const Json& value, const std::string& where) {
  try {
    if (value.at("schema") != kSchema) {
      throw DataError(fmt::format("schema {} is not {}", to_line(value.at("schema")), kSchema));
    }
    Plan plan;
    plan.title = value.at("title").get<std::string>();
    plan.case_key = value.at("case").get<std::string>();
    if (value.contains("campaign")) plan.site = site_of(value.at("campaign"), "campaign");
    for (const Json& step : value.at("steps")) plan.steps.push_back(step_of(step));
    plan.validate();
    return plan;
  } catch (const Json::exception&) {
    throw DataError(fmt::format("{}: not a plan: a field is missing or of the wrong type", where));
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", where, error.what()));
  }
}

std::string plan_text(const Plan& plan) {
  std::string out = fmt::format("{}\n", plan.title);
  if (!plan.case_key.empty()) out += fmt::format("case {}\n", plan.case_key);
  out += fmt::format("{} step{}, plan {}\n", plan.steps.size(), plan.steps.size() == 1 ? "" : "s",
                     plan.hash().substr(0, 12));
  // Not a step: jobs of a scheduler bring it along (launch/host/host_setup.h).
  if (plan.site && !plan.site->settings.setup.empty()) {
    out += fmt::format("setup {}, once on every host that a job comes to\n", shell_line(plan.site->settings.setup));
  }
  for (size_t i = 0; i < plan.steps.size(); ++i) out += step_text(plan.steps[i], i + 1);
  return out;
}

}  // namespace assay
