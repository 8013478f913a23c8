#include "results/collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/file_set.h"
#include "base/hash.h"
#include "base/text.h"
#include "config/case_key.h"
#include "record/keys.h"
#include "results/program_report.h"
#include "results/step_times.h"
#include "run/node_facts.h"

namespace assay {

namespace {

// The member, or null.
const Json& part(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string text_of(const Json& value) { return value.is_string() ? valid_utf8(value.get<std::string>()) : ""; }

// A file of the step's folder; null when there is none, and a warning when it cannot be read.
Json optional_file(const std::filesystem::path& path, std::vector<std::string>& warnings) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return nullptr;
  try {
    return read_json_file(path);
  } catch (const Error& error) {
    warnings.push_back(fmt::format("{}; left out", error.what()));
    return nullptr;
  }
}

// --- what is known of the step beside its records

// The configuration that a native step reads: files.inputs["config.json"] of the plan.
const Json& step_config(const Step& step) {
  static const Json kNull;
  const auto found = step.files.inputs.find(layout::kConfig);
  return found == step.files.inputs.end() ? kNull : found->second;
}

std::string configured_precision(const Json& config) {
  const Json& engine = part(part(config, "config"), "Engine");
  if (!engine.is_object()) return "";
  const Json& mixed = part(engine, "mix_precision");
  if (part(mixed, "enable") == true) {
    const std::string dtype = text_of(part(mixed, "dtype"));
    return dtype.empty() ? "bfloat16" : dtype;
  }
  const std::string precision = text_of(part(engine, "precision"));
  return precision.empty() ? "float32" : precision;
}

const Json* at_path(const Json& tree, const std::string& path) {
  const Json* node = &tree;
  for (const std::string& key : split(path, '.')) {
    if (!node->is_object() || !node->contains(key)) return nullptr;
    node = &node->at(key);
  }
  return node;
}

// What differs from the standard case: values whose place is a vendor's file, a plan or the command line.
std::string changed_values(const Json& config) {
  constexpr size_t kMaxListed = 6;
  std::vector<std::string> changed;
  if (!part(config, "origins").is_object()) return "";
  for (const auto& [path, place] : config.at("origins").items()) {
    const std::string text = text_of(place);
    const bool standard =
        text.empty() || text.rfind("cases/", 0) == 0 || text.rfind("default", 0) == 0 || text.rfind("derived", 0) == 0;
    const Json* value = standard ? nullptr : at_path(part(config, "config"), path);
    if (!value || value->is_structured()) continue;
    changed.push_back(
        fmt::format("{}={}", path.substr(path.rfind('.') + 1), value->is_string() ? text_of(*value) : to_line(*value)));
  }
  if (changed.size() > kMaxListed) {
    const size_t more = changed.size() - kMaxListed;
    changed.resize(kMaxListed);
    changed.push_back(fmt::format("{} more", more));
  }
  return join(changed, ", ");
}

std::string vendor_of(const Plan& plan, const Step& step) {
  if (plan.site && !plan.site->vendor.empty()) return plan.site->vendor;
  const Json& config = step_config(step);
  if (!part(config, "origins").is_object()) return "";
  for (const auto& [path, place] : config.at("origins").items()) {
    const auto parts = split(text_of(place), '/');
    if (parts.size() > 2 && parts[0] == "vendors") return parts[1];
  }
  return "";
}

// One host of a step: its name, and what it said it is; null where it did not.
struct StepHost {
  std::string name;
  Json environment = nullptr;
};

// Where a campaign put it, by the operator's names, or as the hosts call themselves (Slurm chose them); a run of its
// own has this machine.
std::vector<StepHost> hosts_of(const RunRecord& run, const Step& step, const StepState& state,
                               const Json& run_environment, std::vector<std::string>& warnings) {
  std::vector<StepHost> hosts;
  for (int node = 0; step.ranks.on_hosts && node < step.ranks.nnodes; ++node) {
    const auto index = static_cast<size_t>(node);
    StepHost host;
    if (state.places.is_array() && index < state.places.size()) host.name = text_of(part(state.places[index], "host"));
    try {
      if (auto facts = read_node_facts(run.path / run.plan.folder(step.name), node)) {
        if (host.name.empty()) host.name = facts->host;
        host.environment = std::move(facts->environment);
      }
    } catch (const Error& error) {
      warnings.push_back(fmt::format("{}; its host is not known", error.what()));
    }
    if (!host.name.empty()) hosts.push_back(std::move(host));
  }
  if (hosts.empty()) hosts.push_back({text_of(part(part(run_environment, "host"), "name")), run_environment});
  return hosts;
}

// That of the first host, where rank 0 is; of several hosts also each one's own.
Json environment_of(const std::vector<StepHost>& hosts) {
  Json out = hosts.front().environment.is_object() ? hosts.front().environment : Json::object();
  if (hosts.size() < 2) return out;
  Json all = Json::object();
  for (const StepHost& host : hosts) all[host.name] = host.environment;
  out["hosts"] = std::move(all);
  return out;
}

// "AMD EPYC 7763, 64 cores; 8 x A100": what the worker saw, or else what assay did.
std::string system_of(const Json& environment) {
  const Json& worker = part(environment, "cpu");
  const Json& processor = part(environment, "processor");
  std::string model = text_of(part(worker, "model"));
  if (model.empty()) model = text_of(part(processor, "model"));
  const Json& seen = part(worker, "logical_cores");
  const Json& cores = seen.is_number_integer() ? seen : part(processor, "cores");
  if (cores.is_number_integer()) {
    model += fmt::format("{}{} core{}", model.empty() ? "" : ", ", cores.get<int64_t>(), cores == 1 ? "" : "s");
  }
  std::map<std::string, int> devices;
  if (const Json& list = part(part(environment, "devices"), "list"); list.is_array()) {
    for (const Json& device : list) {
      const std::string name = device.is_string() ? text_of(device) : text_of(part(device, "name"));
      if (!name.empty()) ++devices[name];
    }
  }
  for (const auto& [name, count] : devices) model += fmt::format("; {} x {}", count, name);
  return model;
}

Json with_environment_records(Json environment, const std::vector<std::vector<Record>>& ranks) {
  if (!environment.is_object()) environment = Json::object();
  for (const auto& records : ranks) {
    for (const Record& record : records) {
      if (record.type != Record::Type::Environment || !record.data.is_object()) continue;
      for (const auto& [group, values] : record.data.items()) environment[group] = values;
    }
    if (!records.empty()) break;  // of the first rank; the others are alike
  }
  return environment;
}

void add_disturbance(const std::filesystem::path& file, Result& row) {
  const Json disturbance = optional_file(file, row.figures.warnings);
  row.monitor = part(disturbance, "summary");
  // Of the hosts as a whole, where they can tell.
  const Json& energy = part(row.monitor, "energy_j");
  if (energy.is_number() && energy.get<double>() > 0) row.figures.values.emplace(keys::kEnergy, energy.get<double>());
  const Json& suspect = part(disturbance, "suspect");
  if (!suspect.is_array()) return;
  Json sentences = Json::array();
  for (const Json& sentence : suspect) {
    if (!text_of(sentence).empty()) sentences.push_back(text_of(sentence));
  }
  if (!sentences.empty()) row.suspect = std::move(sentences);
}

// Of the first host, or what all hosts agree on: Slurm may have used others than were asked.
void add_versions(const RunRecord& run, Result& row) {
  const Json by_host = optional_file(run.path / kVersionsFile, row.figures.warnings);
  if (!by_host.is_object() || by_host.empty()) return;
  const Json* versions = row.hosts.empty() ? nullptr : &part(by_host, row.hosts.front().c_str());
  const bool all_agree =
      std::all_of(by_host.begin(), by_host.end(), [&](const Json& host) { return host == *by_host.begin(); });
  if ((!versions || !versions->is_object()) && all_agree) versions = &*by_host.begin();
  if (versions && versions->is_object() && !versions->empty()) row.environment["versions"] = *versions;
}

// --- figures that the program did not report and others know

void add_step_times(const std::vector<Record>& records, Result& row) {
  row.step_time = step_time_json(step_seconds(records));
  const std::pair<const char*, const char*> figures[] = {
      {keys::kStepTimeP50, "p50"}, {keys::kStepTimeP90, "p90"}, {keys::kStepTimeP99, "p99"}, {keys::kJitter, "jitter"}};
  for (const auto& [key, name] : figures) {
    if (const Json& value = part(row.step_time, name); value.is_number()) row.figures.values[key] = value.get<double>();
  }
}

// The last value of a metric that is a finite number.
std::optional<double> last_metric(const std::vector<Record>& records, const char* name) {
  for (size_t i = records.size(); i > 0; --i) {
    const Record& record = records[i - 1];
    if (record.type != Record::Type::Metrics) continue;
    const Json& value = part(record.data, name);
    if (value.is_number() && std::isfinite(value.get<double>())) return value.get<double>();
  }
  return std::nullopt;
}

std::string unit_of_metric(const std::vector<Record>& records, const char* name) {
  for (const Record& record : records) {
    if (record.type == Record::Type::Metadata && record.name == name) return text_of(part(record.data, "unit"));
  }
  return "";
}

void fill_from_records(const std::vector<Record>& records, Result& row) {
  add_step_times(records, row);
  Figures& figures = row.figures;
  const auto fill = [&](const char* key, const std::optional<double>& value) {
    if (value) figures.values.emplace(key, *value);
  };
  if (!figures.value(keys::kThroughputTrain)) {
    fill(keys::kThroughputTrain, logged_throughput(records));
    if (figures.unit.empty()) figures.unit = unit_of_metric(records, keys::kTrainIps);
  }
  fill(keys::kFinalAccuracy, last_metric(records, keys::kValMetric));
  fill(keys::kFinalLoss, last_metric(records, keys::kValLoss));
  fill(keys::kPeakMemory, last_metric(records, keys::kTrainPeakMemory));
}

void fill_from_outside(const StepState& state, const Step& step, const Json& environment, Result& row) {
  Figures& figures = row.figures;
  if (state.seconds && *state.seconds >= 0) figures.values.emplace(keys::kE2eTime, *state.seconds);
  if (state.max_rss_bytes && *state.max_rss_bytes > 0) {
    figures.values.emplace(keys::kPeakMemory, static_cast<double>(*state.max_rss_bytes));
  }
  const Json& total = part(part(environment, "memory"), "total_bytes");
  if (total.is_number() && total.get<double>() > 0) figures.values.emplace(keys::kTotalMemory, total.get<double>());
  const Json& config = step_config(step);
  if (figures.precision.empty()) figures.precision = configured_precision(config);
  if (figures.fix_hp.empty()) figures.fix_hp = changed_values(config);
  if (row.target.is_null() && part(config, keys::kTarget).is_object()) row.target = config.at(keys::kTarget);
  if (std::string metric = text_of(part(row.target, "metric")); !metric.empty()) figures.metric = metric;
  if (!part(row.hashes, "case").is_null() || config.is_null()) return;
  // Cases of other frameworks have their own form of configuration, and its hash tells as well whether it changed.
  row.hashes["case"] = part(config, "hash").is_string() ? config.at("hash") : Json(sha256(to_line(config)));
}

// A share of another chip's peak says nothing of this one: what a program names must be a peak that the vendor states,
// of one device or of all that it used.
void refuse_other_peak(const Plan& plan, const Step& step, Figures& figures) {
  constexpr double kRounding = 0.01;  // data sheets round
  if (!figures.stated_peak || !figures.value(keys::kMfu) || !plan.site || plan.site->peak_flops.empty()) return;
  for (const auto& [precision, peak] : plan.site->peak_flops) {
    for (const int devices : {1, step.ranks.nproc, step.ranks.world_size()}) {
      const double expected = peak * devices;
      if (std::abs(*figures.stated_peak - expected) <= kRounding * expected) return;
    }
  }
  figures.values.erase(keys::kMfu);
  figures.warnings.push_back(
      fmt::format("mfu: a share of {:g} operations a second (peak_flops), which is no peak that the vendor states for "
                  "this hardware; left out",
                  *figures.stated_peak));
}

// What ran of a case that is a command; a native one reports the commit of its worker.
void add_code_hash(const RunRecord& run, const Step& step, Result& row) {
  if (step.command.code_folders().empty() || !part(row.hashes, "code").is_null()) return;
  try {
    FileSet code{run.path};
    for (const std::string& folder : step.command.code_folders()) code.add(folder);
    row.hashes["code"] = code.hash();
  } catch (const Error& error) {
    row.figures.warnings.push_back(fmt::format("{}; its code has no hash", error.what()));
  }
}

std::string case_of(const Plan& plan, const Step& step) {
  const std::string& key = step.measures.key.empty() ? plan.case_key : step.measures.key;
  try {
    return CaseKey::parse(key).text();
  } catch (const UsageError&) {
    return key;  // a plan of others; its name still is one
  }
}

// Who and where: what the plan, the journal and the hosts know.
void fill_identity(const RunRecord& run, const Step& step, const StepState& state, Result& result) {
  result.run = std::filesystem::absolute(run.path).lexically_normal().filename().string();
  result.case_key = case_of(run.plan, step);
  result.round = step.measures.round;
  result.nnodes = step.ranks.nnodes;
  result.nproc = step.ranks.nproc;
  result.started_us = state.started_us.value_or(run.state.started_us);
  result.outcome = *state.outcome;
  result.reason = state.reason;
  result.vendor = vendor_of(run.plan, step);
  result.division = text_of(part(step_config(step), "division"));
  if (result.division.empty() && run.plan.site) result.division = run.plan.site->division;
}

void fill_hosts(const RunRecord& run, const Step& step, const StepState& state, const Json& run_environment,
                const std::vector<std::vector<Record>>& ranks, Result& result) {
  const std::vector<StepHost> hosts = hosts_of(run, step, state, run_environment, result.figures.warnings);
  for (const StepHost& host : hosts) {
    if (!host.name.empty()) result.hosts.push_back(host.name);
  }
  result.environment = with_environment_records(environment_of(hosts), ranks);
  add_versions(run, result);
  result.system = system_of(result.environment);
  if (result.system.empty()) result.system = join(result.hosts, ", ");
}

// What the step reported; where it measures a case and has ended, with all that is known of it besides.
Result measurement(const RunRecord& run, const Step& step, const Json& run_environment,
                   const std::vector<std::vector<Record>>& ranks, const ProgramReport& report) {
  Result result;
  result.step = step.name;
  result.case_key = step.measures.key;
  result.figures = report.figures;
  result.target = report.target;
  result.hashes = report.hashes;
  const auto found = run.state.steps.find(step.name);
  if (!measures_case(run.plan, step) || found == run.state.steps.end()) return result;
  const StepState& state = found->second;
  if (state.running || !state.outcome || *state.outcome == Outcome::Skipped) return result;
  result.is_measurement = true;
  fill_identity(run, step, state, result);
  fill_hosts(run, step, state, run_environment, ranks, result);
  if (!ranks.empty()) fill_from_records(ranks.front(), result);
  fill_from_outside(state, step, result.environment, result);
  refuse_other_peak(run.plan, step, result.figures);
  add_code_hash(run, step, result);
  add_disturbance(run.path / run.plan.folder(step.name) / layout::kDisturbance, result);
  return result;
}

// The figures over what the program reported. Not-a-number stays visible; what is not a number at all is not shown as
// one.
void show_figures(const Figures& figures, Json& out) {
  for (const FigureSpec& spec : figure_specs()) {
    const auto value = figures.value(spec.key);
    const Json& reported = part(out, spec.key);
    if (value && !is_number(reported)) {
      out[spec.key] = figure_json(spec, value);
    } else if (!value && !reported.is_null() && !is_number(reported)) {
      out[spec.key] = nullptr;
    }
  }
  const auto show_text = [&](const char* key, const std::string& text) {
    if (!text.empty() && !part(out, key).is_string()) out[key] = text;
  };
  show_text(keys::kThroughputUnit, figures.unit);
  show_text(keys::kPrecision, figures.precision);
  show_text(keys::kFixHp, figures.fix_hp);
  if (figures.converged) out[keys::kConverged] = *figures.converged;
}

// Result::shown: the report of the program in our names, with what is known besides.
Json shown_object(const ProgramReport& report, bool of_campaign, const Result& result) {
  Json out = report.data.is_object() ? report.data : Json::object();
  show_figures(result.figures, out);
  out["case"] = of_campaign || report.case_name.empty() ? result.case_key : report.case_name;
  out["step"] = result.step;
  if (!result.figures.warnings.empty()) out["warnings"] = result.figures.warnings;
  if (!result.is_measurement) return out;
  if (!result.step_time.is_null()) out["step_time"] = result.step_time;
  if (out.find(keys::kTarget) == out.end() && !result.target.is_null()) out[keys::kTarget] = result.target;
  if (!of_campaign && !result.is_suspect()) return out;
  out["round"] = result.round;
  out["hosts"] = result.hosts;
  out["suspect"] = result.suspect;
  out["monitor"] = result.monitor;
  return out;
}

}  // namespace

bool measures_case(const Plan& plan, const Step& step) {
  if (step.kind == StepKind::Verify) return false;
  if (!step.measures.key.empty()) return true;
  if (plan.case_key.empty() || step.kind != StepKind::Train) return false;
  return std::count_if(plan.steps.begin(), plan.steps.end(),
                       [](const Step& other) { return other.kind == StepKind::Train; }) == 1;
}

std::optional<Result> collect_result(const RunRecord& run, const Step& step, const Json& environment,
                                     const std::vector<std::vector<Record>>& ranks) {
  ProgramReport report = program_report(ranks);
  Result result = measurement(run, step, environment, ranks, report);
  if (!result.is_measurement && !report.found) return std::nullopt;
  const bool of_campaign = result.is_measurement && !step.measures.key.empty();
  if (report.found || (of_campaign && result.passed())) result.shown = shown_object(report, of_campaign, result);
  return result;
}

std::vector<Result> collect_results(const RunRecord& run) {
  std::vector<std::string> ignored;  // a damaged environment.json is told of by every report
  Json environment = optional_file(run.path / layout::kEnvironment, ignored);
  if (!environment.is_object()) environment = Json::object();
  const RunEvidence evidence(run);
  std::vector<Result> results;
  for (const Step& step : run.plan.steps) {
    if (!measures_case(run.plan, step)) continue;  // before anything is read
    std::vector<std::vector<Record>> ranks;
    std::string damage;
    try {
      ranks = evidence.ranks(step);
    } catch (const DataError& error) {
      damage = fmt::format("{}; its records are left out", error.what());
    }
    std::optional<Result> result = collect_result(run, step, environment, ranks);
    if (!result || !result->is_measurement) continue;
    if (!damage.empty()) result->figures.warnings.push_back(damage);
    results.push_back(std::move(*result));
  }
  return results;
}

std::vector<Result> collect_results(const std::filesystem::path& run_folder) {
  return collect_results(read_run(run_folder));
}

}  // namespace assay
