#include "plan/plan.h"

#include <fmt/format.h>

#include <array>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/time.h"

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

Json to_json(const Step& step) {
  Json out = {{"name", step.name}, {"kind", kind_name(step.kind)}, {"needs", step.needs}};
  // What has its usual value is left out: plans of earlier versions keep their hash.
  if (!step.discard.empty()) out["discard"] = step.discard;
  if (step.kind == StepKind::Verify || !step.checks.empty()) out["checks"] = step.checks;
  if (step.kind == StepKind::Verify) return out;
  if (step.nnodes != 1) {
    out["nnodes"] = step.nnodes;
    out["node_rank"] = step.node_rank;
  }
  if (step.num_servers != 0) out["num_servers"] = step.num_servers;
  if (step.max_restarts != 0) out["max_restarts"] = step.max_restarts;
  if (step.on_hosts) out["on_hosts"] = true;
  if (step.retries != 0) out["retries"] = step.retries;
  if (step.stall_limit_s) out["stall_limit_s"] = *step.stall_limit_s;
  if (!step.case_key.empty()) out["case"] = step.case_key;
  if (step.round != 0) out["round"] = step.round;
  if (!step.framework.empty()) out["framework"] = step.framework;
  if (!step.code.empty()) out["code"] = step.code;
  if (!step.collect.empty()) out["collect"] = step.collect;
  if (!step.patterns.empty()) out["patterns"] = step.patterns;
  out["argv"] = step.argv;
  out["env"] = step.env;
  out["nproc"] = step.nproc;
  out["time_limit_s"] = step.time_limit_s ? Json(*step.time_limit_s) : Json(nullptr);
  out["files"] = step.files;
  out["outputs"] = step.outputs;
  return out;
}

Step step_of(const Json& value) {
  Step step;
  step.name = value.at("name").get<std::string>();
  step.kind = step_kind_of(value.at("kind").get<std::string>());
  step.needs = value.at("needs").get<std::vector<std::string>>();
  step.discard = value.value("discard", step.discard);
  if (step.kind == StepKind::Verify || value.contains("checks")) {
    step.checks = value.at("checks").get<std::vector<Json>>();
  }
  if (step.kind == StepKind::Verify) return step;
  step.nnodes = value.value("nnodes", 1);
  step.node_rank = value.value("node_rank", 0);
  step.num_servers = value.value("num_servers", 0);
  step.max_restarts = value.value("max_restarts", 0);
  step.on_hosts = value.value("on_hosts", false);
  step.retries = value.value("retries", 0);
  if (value.contains("stall_limit_s")) step.stall_limit_s = value.at("stall_limit_s").get<double>();
  step.case_key = value.value("case", "");
  step.round = value.value("round", 0);
  step.framework = value.value("framework", "");
  step.code = value.value("code", step.code);
  step.collect = value.value("collect", step.collect);
  step.patterns = value.value("patterns", step.patterns);
  step.argv = value.at("argv").get<std::vector<std::string>>();
  step.env = value.at("env").get<std::map<std::string, std::string>>();
  step.nproc = value.at("nproc").get<int>();
  if (!value.at("time_limit_s").is_null()) step.time_limit_s = value.at("time_limit_s").get<double>();
  step.files = value.at("files").get<std::map<std::string, Json>>();
  step.outputs = value.at("outputs").get<std::vector<std::string>>();
  return step;
}

}  // namespace

std::vector<std::string> Step::code_folders() const {
  std::vector<std::string> words = argv;
  words.insert(words.end(), code.begin(), code.end());
  std::vector<std::string> out;
  for (const std::string& word : words) {
    if (word.starts_with("code/")) out.push_back(word.substr(0, word.find('/', 5)));
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
    const auto wrong = [&](const std::string& what) { throw DataError(fmt::format("step '{}': {}", step.name, what)); };
    if (!good_name(step.name)) wrong("a step's name has letters, digits, '-' and '_', at most 100");
    if (seen.count(step.name)) wrong("there are two steps of this name");
    for (const std::string& need : step.needs) {
      if (!seen.count(need)) wrong(fmt::format("needs '{}', which is not an earlier step", need));
    }
    if (step.kind == StepKind::Verify) {
      if (step.checks.empty()) wrong("has nothing to check");
    } else {
      if (step.argv.empty() || step.argv[0].empty()) wrong("has no command");
      if (step.nproc < 1) wrong(fmt::format("{} processes", step.nproc));
      if (step.node_rank < 0 || step.node_rank >= step.nnodes) {
        wrong(fmt::format("node {} of {} nodes", step.node_rank, step.nnodes));
      }
      if (step.num_servers < 0 || step.num_servers >= step.nproc || (step.num_servers > 0 && step.nnodes > 1)) {
        wrong(fmt::format("{} parameter servers among {} processes on {} hosts; they need a trainer, and one host",
                          step.num_servers, step.nproc, step.nnodes));
      }
      if (step.max_restarts < 0) wrong(fmt::format("{} restarts", step.max_restarts));
      if (step.retries < 0) wrong(fmt::format("{} retries", step.retries));
      if (step.time_limit_s && !(*step.time_limit_s > 0)) wrong("its time limit is not above 0 s");
      if (step.stall_limit_s && !(*step.stall_limit_s > 0)) wrong("its stall limit is not above 0 s");
      if (step.on_hosts && step.num_servers > 0) wrong("parameter servers are started on one host, not by a campaign");
    }
    for (const auto& [name, content] : step.files) {
      if (!good_file(name)) wrong(fmt::format("file '{}' is outside its folder", name));
    }
    for (const std::string& name : step.discard) {
      if (!good_file(name) || name.rfind("steps/", 0) != 0) {
        wrong(fmt::format("'{}', which it discards, is not in the folder of a step", name));
      }
    }
    for (const std::string& name : step.code) {
      if (!good_file(name) || !name.starts_with("code/")) wrong(fmt::format("'{}' is not in the folder code", name));
    }
    for (const std::string& name : step.collect) {
      if (!good_file(name)) wrong(fmt::format("'{}', which it collects, is outside its folder", name));
    }
    for (const std::string& name : step.outputs) {
      if (!good_file(name)) wrong(fmt::format("output '{}' is outside its folder", name));
    }
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
    if (steps[i].name == step_name) return fmt::format("steps/{}-{}", i + 1, step_name);
  }
  throw InternalError(fmt::format("no step '{}' in the plan", step_name));
}

std::string Plan::hash() const { return sha256(to_line(assay::to_json(*this))); }

Json to_json(const Plan& plan) {
  Json steps = Json::array();
  for (const Step& step : plan.steps) steps.push_back(to_json(step));
  Json out = {{"schema", kSchema}, {"title", plan.title}, {"case", plan.case_key}, {"steps", steps}};
  if (!plan.campaign.is_null()) out["campaign"] = plan.campaign;
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
    if (value.contains("campaign")) plan.campaign = value.at("campaign");
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
  // Not a step: jobs of a scheduler bring it along (launch/host_setup.h).
  if (const Json setup = plan.campaign.is_object() ? plan.campaign.value("setup", Json()) : Json();
      setup.is_array() && !setup.empty()) {
    out += fmt::format("setup {}, once on every host that a job comes to\n",
                       shell_line(setup.get<std::vector<std::string>>()));
  }
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    out += fmt::format("\n{}. {} ({})\n", i + 1, step.name, kind_name(step.kind));
    if (!step.needs.empty()) out += fmt::format("   needs    {}\n", join(step.needs, ", "));
    if (!step.argv.empty()) out += fmt::format("   runs     {}\n", shell_line(step.argv));
    if (step.on_hosts) {
      out += fmt::format("   ranks    {} on {} host{}\n", step.nproc, step.nnodes, step.nnodes == 1 ? "" : "s each");
    } else if (step.nnodes > 1) {
      out += fmt::format("   ranks    {} to {} of {}, on node {} of {}\n", step.first_rank(),
                         step.first_rank() + step.nproc - 1, step.world_size(), step.node_rank, step.nnodes);
    } else if (step.nproc > 1) {
      out += fmt::format("   ranks    {}\n", step.nproc);
    }
    if (step.num_servers > 0) {
      out += fmt::format("   servers  {} of them, for {} trainers\n", step.num_servers, step.nproc - step.num_servers);
    }
    if (step.max_restarts > 0) out += fmt::format("   restarts at most {}\n", step.max_restarts);
    for (const auto& [name, variable] : step.env) out += fmt::format("   with     {}={}\n", name, variable);
    if (step.time_limit_s) out += fmt::format("   within   {}\n", duration_text(*step.time_limit_s));
    if (step.stall_limit_s) out += fmt::format("   silent   at most {}\n", duration_text(*step.stall_limit_s));
    if (step.retries > 0) out += fmt::format("   retries  at most {}, of infrastructure failures\n", step.retries);
    if (!step.collect.empty()) out += fmt::format("   collects {}\n", join(step.collect, ", "));
    for (const Json& check : step.checks) out += fmt::format("   checks   {}\n", to_line(check));
    for (const std::string& output : step.outputs) out += fmt::format("   writes   {}\n", output);
    for (const std::string& path : step.discard) out += fmt::format("   discards {}\n", path);
  }
  return out;
}

}  // namespace assay
