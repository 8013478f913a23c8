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
#include "launch/job_state.h"
#include "launch/launcher.h"
#include "record/keys.h"
#include "record/stream.h"
#include "results/step_times.h"

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

// --- what a program reported

void take_report(const Record& record, Report& out) {
  if (record.type == Record::Type::Event && record.name == keys::kInitStart) {
    out = {};  // another attempt: what the one before it reported is void
    return;
  }
  const bool is_result = record.type == Record::Type::Result;
  const bool is_finished = record.type == Record::Type::Event && record.name == keys::kFinished;
  const bool is_summary = record.type == Record::Type::Metrics && record.step && record.step->empty();
  if ((!is_result && !is_finished && !is_summary) || !record.data.is_object()) return;
  Figures figures = read_figures(record.data, is_result ? Voice::Ours : Voice::Foreign);
  if (!is_result && figures.values.empty() && !figures.converged && figures.warnings.empty()) return;
  out.found = true;
  merge_figures(out.figures, std::move(figures));
  if (part(record.data, keys::kTarget).is_object()) out.target = record.data.at(keys::kTarget);
  if (part(record.data, keys::kHashes).is_object()) out.hashes = record.data.at(keys::kHashes);
  if (!is_result) return;
  out.data = record.data;
  out.case_name = record.name;
}

// --- what is known of the step beside its records

// The configuration that a native step reads: files["config.json"] of the plan.
const Json& step_config(const Step& step) {
  static const Json kNull;
  const auto found = step.files.find("config.json");
  return found == step.files.end() ? kNull : found->second;
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
  if (std::string named = text_of(part(plan.campaign, "vendor")); !named.empty()) return named;
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
  for (int node = 0; step.on_hosts && node < step.nnodes; ++node) {
    const auto index = static_cast<size_t>(node);
    StepHost host;
    if (state.places.is_array() && index < state.places.size()) host.name = text_of(part(state.places[index], "host"));
    try {
      if (auto job = read_state(run.path / run.plan.folder(step.name), node)) {
        if (host.name.empty()) host.name = valid_utf8(job->host);
        host.environment = std::move(job->environment);
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

void add_disturbance(const std::filesystem::path& file, ResultRow& row) {
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
void add_versions(const RunRecord& run, ResultRow& row) {
  const Json told = optional_file(run.path / kVersionsFile, row.figures.warnings);
  if (!told.is_object() || told.empty()) return;
  const Json* versions = row.hosts.empty() ? nullptr : &part(told, row.hosts.front().c_str());
  const bool all_agree = std::all_of(told.begin(), told.end(), [&](const Json& one) { return one == *told.begin(); });
  if ((!versions || !versions->is_object()) && all_agree) versions = &*told.begin();
  if (versions && versions->is_object() && !versions->empty()) row.environment["versions"] = *versions;
}

// --- figures that the program did not report and others know

void add_step_times(const std::vector<Record>& records, ResultRow& row) {
  row.step_time = step_time_json(step_seconds(records));
  const std::pair<const char*, const char*> figures[] = {
      {kStepTimeP50, "p50"}, {kStepTimeP90, "p90"}, {kStepTimeP99, "p99"}, {kJitter, "jitter"}};
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

void fill_from_records(const std::vector<Record>& records, ResultRow& row) {
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
  fill(kFinalLoss, last_metric(records, keys::kValLoss));
  fill(keys::kPeakMemory, last_metric(records, keys::kTrainPeakMemory));
}

void fill_from_outside(const StepState& state, const Step& step, const Json& environment, ResultRow& row) {
  Figures& figures = row.figures;
  if (state.seconds && *state.seconds >= 0) figures.values.emplace(keys::kE2eTime, *state.seconds);
  if (state.max_rss_bytes && *state.max_rss_bytes > 0) {
    figures.values.emplace(keys::kPeakMemory, static_cast<double>(*state.max_rss_bytes));
  }
  const Json& total = part(part(environment, "memory"), "total_bytes");
  if (total.is_number() && total.get<double>() > 0) figures.values.emplace(kTotalMemory, total.get<double>());
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
  const Json& known = part(plan.campaign, "peak_flops");
  if (!figures.stated_peak || !figures.value(keys::kMfu) || !known.is_object() || known.empty()) return;
  for (const auto& [precision, peak] : known.items()) {
    if (!peak.is_number()) continue;
    for (const int devices : {1, step.nproc, step.world_size()}) {
      const double expected = peak.get<double>() * devices;
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
void add_code_hash(const RunRecord& run, const Step& step, ResultRow& row) {
  if (step.code_folders().empty() || !part(row.hashes, "code").is_null()) return;
  try {
    FileSet code{run.path};
    for (const std::string& folder : step.code_folders()) code.add(folder);
    row.hashes["code"] = code.hash();
  } catch (const Error& error) {
    row.figures.warnings.push_back(fmt::format("{}; its code has no hash", error.what()));
  }
}

std::string case_of(const Plan& plan, const Step& step) {
  const std::string& key = step.case_key.empty() ? plan.case_key : step.case_key;
  try {
    return CaseKey::parse(key).text();
  } catch (const UsageError&) {
    return key;  // a plan of others; its name still is one
  }
}

}  // namespace

std::vector<std::vector<Record>> step_records(const RunRecord& run, const Step& step) {
  const auto folder = run.path / run.plan.folder(step.name);
  const int first = step.on_hosts ? 0 : step.first_rank();
  const int count = step.on_hosts ? step.world_size() : step.nproc;
  std::vector<std::vector<Record>> ranks;
  for (int rank = first; rank < first + count; ++rank) ranks.push_back(read_records(folder / records_file_name(rank)));
  return ranks;
}

Report reported(const std::vector<Record>& records) {
  Report out;
  for (const Record& record : records) take_report(record, out);
  return out;
}

Report reported(const std::vector<std::vector<Record>>& ranks) {
  for (const auto& records : ranks) {
    Report report = reported(records);
    if (report.found) return report;
  }
  return {};
}

bool measures_case(const Plan& plan, const Step& step) {
  if (step.kind == StepKind::Verify) return false;
  if (!step.case_key.empty()) return true;
  if (plan.case_key.empty() || step.kind != StepKind::Train) return false;
  return std::count_if(plan.steps.begin(), plan.steps.end(),
                       [](const Step& other) { return other.kind == StepKind::Train; }) == 1;
}

std::optional<ResultRow> result_row(const RunRecord& run, const Step& step, const Json& run_environment,
                                    const std::vector<std::vector<Record>>& ranks) {
  const auto found = run.state.steps.find(step.name);
  if (!measures_case(run.plan, step) || found == run.state.steps.end()) return std::nullopt;
  const StepState& state = found->second;
  if (state.running || !state.outcome || *state.outcome == Outcome::Skipped) return std::nullopt;
  ResultRow row;
  row.run = std::filesystem::absolute(run.path).lexically_normal().filename().string();
  row.step = step.name;
  row.case_key = case_of(run.plan, step);
  row.round = step.round;
  row.nnodes = step.nnodes;
  row.nproc = step.nproc;
  row.started_us = state.started_us.value_or(run.state.started_us);
  row.outcome = *state.outcome;
  row.reason = state.reason;
  Report report = reported(ranks);
  row.figures = std::move(report.figures);
  row.target = std::move(report.target);
  row.hashes = std::move(report.hashes);
  const std::vector<StepHost> hosts = hosts_of(run, step, state, run_environment, row.figures.warnings);
  for (const StepHost& host : hosts) {
    if (!host.name.empty()) row.hosts.push_back(host.name);
  }
  row.environment = with_environment_records(environment_of(hosts), ranks);
  add_versions(run, row);
  row.system = system_of(row.environment);
  if (row.system.empty()) row.system = join(row.hosts, ", ");
  row.vendor = vendor_of(run.plan, step);
  row.division = text_of(part(step_config(step), "division"));
  if (row.division.empty()) row.division = text_of(part(run.plan.campaign, "division"));
  if (!ranks.empty()) fill_from_records(ranks.front(), row);
  fill_from_outside(state, step, row.environment, row);
  refuse_other_peak(run.plan, step, row.figures);
  add_code_hash(run, step, row);
  add_disturbance(run.path / run.plan.folder(step.name) / "disturbance.json", row);
  return row;
}

std::optional<ResultRow> result_row(const RunRecord& run, const Step& step, const Json& environment) {
  if (!measures_case(run.plan, step)) return std::nullopt;  // before anything is read
  std::vector<std::vector<Record>> ranks;
  std::string damage;
  try {
    ranks = step_records(run, step);
  } catch (const DataError& error) {
    damage = fmt::format("{}; its records are left out", error.what());
  }
  std::optional<ResultRow> row = result_row(run, step, environment, ranks);
  if (row && !damage.empty()) row->figures.warnings.push_back(damage);
  return row;
}

std::vector<ResultRow> collect_results(const RunRecord& run) {
  std::vector<std::string> ignored;  // a damaged environment.json is told of by every report
  Json environment = optional_file(run.path / "environment.json", ignored);
  if (!environment.is_object()) environment = Json::object();
  std::vector<ResultRow> rows;
  for (const Step& step : run.plan.steps) {
    if (auto row = result_row(run, step, environment)) rows.push_back(std::move(*row));
  }
  return rows;
}

std::vector<ResultRow> collect_results(const std::filesystem::path& run_folder) {
  return collect_results(read_run(run_folder));
}

Json result_object(const Report& report, const Step& step, const std::optional<ResultRow>& row) {
  const bool of_campaign = row && !step.case_key.empty();
  if (!report.found && !(of_campaign && row->passed())) return nullptr;
  const Figures& figures = row ? row->figures : report.figures;
  Json out = report.data.is_object() ? report.data : Json::object();
  for (const FigureSpec& spec : figure_specs()) {
    const auto value = figures.value(spec.key);
    const Json& said = part(out, spec.key);
    // Not-a-number stays visible in a report; what is no number at all is not shown as one.
    if (value && !is_number(said))
      out[spec.key] = figure_json(spec, value);
    else if (!value && !said.is_null() && !is_number(said))
      out[spec.key] = nullptr;
  }
  const auto say = [&](const char* key, const std::string& text) {
    if (!text.empty() && !part(out, key).is_string()) out[key] = text;
  };
  say(keys::kThroughputUnit, figures.unit);
  say("precision", figures.precision);
  say("fix_hp", figures.fix_hp);
  if (figures.converged) out[keys::kConverged] = *figures.converged;
  out["case"] = of_campaign || report.case_name.empty() ? (row ? row->case_key : step.case_key) : report.case_name;
  out["step"] = step.name;
  if (!figures.warnings.empty()) out["warnings"] = figures.warnings;
  if (!row) return out;
  if (!row->step_time.is_null()) out["step_time"] = row->step_time;
  if (out.find(keys::kTarget) == out.end() && !row->target.is_null()) out[keys::kTarget] = row->target;
  if (!of_campaign && !row->is_suspect()) return out;
  out["round"] = row->round;
  out["hosts"] = row->hosts;
  out["suspect"] = row->suspect;
  out["monitor"] = row->monitor;
  return out;
}

}  // namespace assay
