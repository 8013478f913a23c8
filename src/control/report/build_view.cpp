#include "report/build_view.h"

#include <fmt/format.h>

#include <map>

#include "base/files.h"
#include "base/text.h"
#include "layout/run_layout.h"
#include "record/keys.h"
#include "record/stream.h"
#include "results/collect.h"
#include "run/evidence.h"

namespace assay {

namespace {

constexpr size_t kShownLines = 15;

StepView step_view(const RunRecord& run, size_t index) {
  const Step& step = run.plan.steps[index];
  StepView view;
  view.number = static_cast<int>(index + 1);
  view.name = step.name;
  view.kind = kind_name(step.kind);
  view.folder = run.plan.folder(step.name);
  const auto found = run.state.steps.find(step.name);
  if (found == run.state.steps.end()) {
    view.reason = "not started";
    return view;
  }
  const StepState& state = found->second;
  view.attempts = state.attempts;
  view.restarts = state.restarts;
  view.started_us = state.started_us;
  if (state.running || !state.outcome) {
    view.reason = "not finished";
    return view;
  }
  view.outcome = *state.outcome;
  view.reason = state.reason;
  view.seconds = state.seconds;
  view.exit_code = state.exit_code;
  view.signal = state.signal;
  view.max_rss_bytes = state.max_rss_bytes;
  if (view.outcome == Outcome::Error) {
    const int rank = state.rank.value_or(step.ranks.first_rank());
    view.last_lines = tail_lines(run.path / view.folder / layout::rank_log(rank), kShownLines);
  }
  return view;
}

// Curves by metric.
class CurveCollector {
 public:
  void add(const Record& record) {
    if (record.type == Record::Type::Metadata) metadata_[record.name] = record.data;
    if (record.type != Record::Type::Metrics || !record.data.contains(keys::kGlobalStep)) return;
    if (!is_number(record.data.at(keys::kGlobalStep))) return;
    const double step = number_of(record.data.at(keys::kGlobalStep));
    for (const auto& [name, value] : record.data.items()) {
      const bool is_metric = name.rfind("train.", 0) == 0 || name.rfind("val.", 0) == 0;
      if (is_metric && is_number(value)) points_[name][step] = number_of(value);
    }
  }

  std::vector<Curve> curves() const {
    std::vector<Curve> out;
    for (const auto& [name, points] : points_) {
      Curve curve;
      curve.name = name;
      curve.stage = name.rfind("val.", 0) == 0 ? "VALID" : "TRAIN";
      const auto found = metadata_.find(name);
      if (found != metadata_.end() && found->second.contains("unit") && found->second["unit"].is_string()) {
        curve.unit = found->second["unit"].get<std::string>();
      }
      if (found != metadata_.end() && found->second.contains("name") && found->second["name"].is_string()) {
        curve.label = found->second["name"].get<std::string>();
      }
      for (const auto& [step, value] : points) {
        curve.x.push_back(step);
        curve.y.push_back(value);
      }
      out.push_back(std::move(curve));
    }
    return out;
  }

 private:
  std::map<std::string, std::map<double, double>> points_;
  std::map<std::string, Json> metadata_;
};

void flatten(const Json& value, const std::string& path, Json& out) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, child] : value.items()) flatten(child, path.empty() ? key : path + "." + key, out);
  } else {
    out[path] = value;
  }
}

void add_records(const std::vector<Record>& records, RunView& view, CurveCollector& curves) {
  for (const Record& record : records) {
    curves.add(record);
    if (record.type == Record::Type::Environment) {
      for (const auto& [group, values] : record.data.items()) view.environment[group] = values;
    }
    if (record.type == Record::Type::Parameters) flatten(record.data, "", view.parameters);
  }
}

void add_verdicts(const std::filesystem::path& file, RunView& view) {
  if (!std::filesystem::exists(file)) return;
  for (const Json& verdict : read_json_file(file)) view.verdicts.push_back(verdict_of(verdict));
}

}  // namespace

RunView build_view(const std::filesystem::path& run_folder) {
  const RunRecord run = read_run(run_folder);
  RunView view;
  view.id = std::filesystem::absolute(run_folder).lexically_normal().filename().string();
  view.title = run.plan.title;
  view.command = shell_line(run.state.command);
  view.started_us = run.state.started_us;
  view.ended_us = run.state.ended_us;
  if (std::filesystem::exists(run_folder / layout::kEnvironment)) {
    view.environment = read_json_file(run_folder / layout::kEnvironment);
  }
  const Json environment = view.environment;  // before records of workers add to it
  const bool many_trainings = std::count_if(run.plan.steps.begin(), run.plan.steps.end(),
                                            [](const Step& step) { return step.kind == StepKind::Train; }) > 1;
  const RunEvidence evidence(run);
  CurveCollector curves;
  for (size_t i = 0; i < run.plan.steps.size(); ++i) {
    view.steps.push_back(step_view(run, i));
    const auto folder = run_folder / view.steps.back().folder;
    const Step& step = run.plan.steps[i];
    std::vector<std::vector<Record>> ranks = evidence.ranks(step);
    auto result = collect_result(run, step, environment, ranks);
    if (result && !result->shown.is_null()) view.case_results.push_back(std::move(*result));
    CurveCollector of_step;
    add_records(merge_by_time(std::move(ranks)), view, many_trainings ? of_step : curves);
    for (Curve& curve : of_step.curves()) {
      if (curve.name != keys::kTrainLoss) continue;  // of many trainings, what they have in common
      curve.source = step.name;
      view.curves.push_back(std::move(curve));
    }
    add_verdicts(folder / layout::kVerdicts, view);
  }
  for (Curve& curve : curves.curves()) view.curves.push_back(std::move(curve));
  view.outcome = run.state.outcome.value_or(Outcome::Invalid);
  if (!run.state.outcome) {
    view.reason = "the run has not ended";
  } else if (run.plan.steps.empty()) {
    view.reason = "the plan has no step: nothing was run";
  } else if (view.outcome != Outcome::Pass) {
    for (const StepView& step : view.steps) {
      if (step.outcome != view.outcome) continue;
      view.reason = fmt::format("{}: {}", step.name, step.reason);
      break;
    }
  }
  return view;
}

}  // namespace assay
