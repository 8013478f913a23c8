#include "report/case_result.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/time.h"
#include "config/case_key.h"
#include "layout/run_layout.h"
#include "plan/plan.h"
#include "record/keys.h"
#include "report/escape.h"
#include "report/figures.h"
#include "report/result_json.h"
#include "run/run_folder.h"

namespace assay {

namespace {

constexpr char kSchema[] = "assay/case-results-v1";
constexpr char kResultsFile[] = "results.json";

// The member, or null.
const Json& member(const Json& object, const std::string& key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string text_or_empty(const Json& value) { return value.is_string() ? value.get<std::string>() : ""; }

std::string machine_text(const Json& environment) {
  const Json& processor = member(environment, "processor");
  const Json& cores = member(processor, "cores");
  const std::string model = text_or_empty(member(processor, "model"));
  return cores.is_number_integer() ? fmt::format("{}, {} cores", model, cores.get<int64_t>()) : model;
}

const Result* trained_result(const RunView& run) {
  for (const Result& result : run.case_results) {
    if (result.step == "train") return &result;
  }
  return run.case_results.empty() ? nullptr : &run.case_results[0];
}

Json number_or_null(const std::optional<double>& value) { return value ? json_number(*value) : Json(nullptr); }

std::string target_bound(const Json& target) {
  if (!is_number(member(target, "value"))) return kNotMeasured;
  return fmt::format(
      "{} {}", member(target, "goal") == "minimize" ? "<=" : ">=", number_text(number_of(member(target, "value"))));
}

// What a run that left no result.json (it goes on, or was killed) says about its case.
CaseResult unfinished(const std::string& case_name, const RunRecord& run) {
  CaseResult result;
  result.case_name = case_name;
  result.run = run.path.filename().string();
  result.started_us = run.state.started_us;
  result.outcome = run.state.outcome;
  return result;
}

}  // namespace

std::optional<CaseResult> case_result_of(const std::string& case_name, const RunView& run) {
  if (case_name.empty()) return std::nullopt;
  CaseResult out;
  out.case_name = case_name;
  out.run = run.id;
  out.started_us = run.started_us;
  out.outcome = run.outcome;
  out.machine = machine_text(run.environment);
  out.commit = text_or_empty(member(member(run.environment, "assay"), "commit"));
  const Result* result = trained_result(run);
  if (!result) return out;
  out.value = result_number(*result, keys::kFinalAccuracy);
  out.target = member(result->shown, keys::kTarget);
  if (out.value) out.metric = metric_name(*result);
  out.reached = result->figures.converged;
  out.seconds = result_number(*result, keys::kE2eTime);
  out.speed = result_number(*result, keys::kThroughputTrain);
  out.unit = result->figures.unit;
  const Json& seed = member(result->shown, keys::kSeed);
  if (seed.is_number_integer()) out.seed = seed.get<int64_t>();
  out.hash = result->config_hash();
  return out;
}

std::map<std::string, CaseResult> last_results(const fs::path& runs) {
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(runs, ignored)) {
    // A name with a dot is a run that was never ready.
    if (entry.path().filename().string()[0] != '.') folders.push_back(entry.path());
  }
  // Names begin with the time.
  std::sort(folders.begin(), folders.end(), std::greater<>());
  std::map<std::string, CaseResult> found;
  for (const fs::path& folder : folders) {
    if (!fs::exists(folder / layout::kPlan, ignored)) continue;
    try {
      const RunRecord run = read_run(folder);
      if (run.plan.case_key.empty()) continue;
      const std::string name = CaseKey::parse(run.plan.case_key).model;
      if (found.contains(name)) continue;
      const fs::path file = folder / layout::kResult;
      const bool finished = run.state.outcome.has_value() && fs::exists(file, ignored);
      found[name] = finished ? case_result_of(name, run_view_of(read_json_file(file), file.string())).value()
                             : unfinished(name, run);
    } catch (const Error&) {
      continue;
    }
  }
  return found;
}

Json to_json(const CaseResult& result) {
  return {{"case", result.case_name},
          {"run", result.run},
          {"started", utc_text(result.started_us)},
          {"outcome", result.outcome ? Json(std::string(outcome_name(*result.outcome))) : Json(nullptr)},
          {"metric", result.metric.empty() ? Json(nullptr) : Json(result.metric)},
          {"value", number_or_null(result.value)},
          {"target", result.target},
          {"reached", result.reached ? Json(*result.reached) : Json(nullptr)},
          {"seconds", number_or_null(result.seconds)},
          {"speed", number_or_null(result.speed)},
          {"unit", result.unit},
          {"seed", result.seed ? Json(*result.seed) : Json(nullptr)},
          {"machine", result.machine},
          {"commit", result.commit},
          {"hash", result.hash}};
}

CaseResult case_result_from(const Json& json, const std::string& where) {
  const auto text = [&](const char* key) {
    const Json& value = member(json, key);
    if (!value.is_string()) throw DataError(fmt::format("{}: {} must be text", where, key));
    return value.get<std::string>();
  };
  const auto number = [&](const char* key) -> std::optional<double> {
    const Json& value = member(json, key);
    if (value.is_null()) return std::nullopt;
    if (!is_number(value)) throw DataError(fmt::format("{}: {} must be a number or null", where, key));
    return number_of(value);
  };
  CaseResult result;
  result.case_name = text("case");
  result.run = text("run");
  const auto started = parse_utc(text("started"));
  if (!started) throw DataError(fmt::format("{}: started must be a time such as 2026-11-15T19:43:05.000000Z", where));
  result.started_us = *started;
  if (!member(json, "outcome").is_null()) result.outcome = outcome_of(text("outcome"));
  result.metric = text_or_empty(member(json, "metric"));
  result.value = number("value");
  result.target = member(json, "target");
  if (member(json, "reached").is_boolean()) result.reached = member(json, "reached").get<bool>();
  result.seconds = number("seconds");
  result.speed = number("speed");
  result.unit = text("unit");
  if (member(json, "seed").is_number_integer()) result.seed = member(json, "seed").get<int64_t>();
  result.machine = text("machine");
  result.commit = text("commit");
  result.hash = text("hash");
  return result;
}

std::vector<CaseResult> read_case_results(const fs::path& case_folder) {
  const fs::path file = case_folder / kResultsFile;
  if (!fs::exists(file)) return {};
  const Json json = read_json_file(file);
  const Json& list = member(json, "results");
  if (member(json, "schema") != kSchema || !list.is_array()) {
    throw DataError(fmt::format("{}: is not a list of results, schema {}", file.string(), kSchema));
  }
  std::vector<CaseResult> results;
  for (size_t i = 0; i < list.size(); ++i) {
    results.push_back(case_result_from(list[i], fmt::format("{}: results[{}]", file.string(), i)));
  }
  return results;
}

std::string results_table(const std::vector<CaseResult>& results) {
  std::string out =
      "| case | result | target | training | speed | seed | day | machine | hash of the case |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const CaseResult& r : results) {
    const std::string value =
        r.value ? fmt::format("{} {}", r.metric, number_text(*r.value)) : std::string(kNotMeasured);
    const std::string speed = r.speed ? fmt::format("{} {}", number_text(*r.speed), r.unit) : std::string(kNotMeasured);
    out += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} | {} |\n", r.case_name, escape_markdown(value),
                       target_bound(r.target), seconds_text(r.seconds), escape_markdown(speed),
                       r.seed ? fmt::to_string(*r.seed) : kNotMeasured, utc_text(r.started_us).substr(0, 10),
                       escape_markdown(r.machine), r.hash.empty() ? kNotMeasured : fmt::format("`{:.8}`", r.hash));
  }
  return out +
         "\nA result is of the case as it was that day: `assay cases` calls it outdated when the case has another hash "
         "now.\n";
}

std::string with_results_table(const std::string& readme, const std::string& table, const std::string& where) {
  const size_t begin = readme.find(kResultsBegin);
  const size_t end = begin == std::string::npos ? begin : readme.find(kResultsEnd, begin);
  if (end == std::string::npos) {
    throw DataError(fmt::format("{}: no place for the table; it goes between these two lines:\n{}{}", where,
                                kResultsBegin, kResultsEnd));
  }
  return readme.substr(0, begin) + kResultsBegin + table + readme.substr(end);
}

void store_case_result(const fs::path& case_folder, const CaseResult& result) {
  std::vector<CaseResult> results = read_case_results(case_folder);
  std::erase_if(results, [&](const CaseResult& old) { return old.case_name == result.case_name; });
  results.push_back(result);
  std::sort(results.begin(), results.end(),
            [](const CaseResult& a, const CaseResult& b) { return a.case_name < b.case_name; });
  Json list = Json::array();
  for (const CaseResult& stored : results) list.push_back(to_json(stored));
  const fs::path readme = case_folder / "README.md";
  const std::string text = with_results_table(read_file(readme), results_table(results), readme.string());
  write_file_atomic(case_folder / kResultsFile, to_pretty({{"schema", kSchema}, {"results", list}}) + "\n");
  write_file_atomic(readme, text);
}

}  // namespace assay
