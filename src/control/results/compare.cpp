#include "results/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "record/keys.h"

namespace assay {

namespace {

// What is compared, in the order it is shown. The others follow from these, or say how a run was set up.
constexpr const char* kComparedFigures[] = {
    keys::kThroughputTrain, keys::kThroughputWhole, keys::kThroughputCore, keys::kE2eTime,
    keys::kStepTimeP50,     keys::kFinalAccuracy,   keys::kPeakMemory,     keys::kEnergy,
};

bool higher_is_better(const FigureSpec& spec, const CaseSummary& measured) {
  if (spec.better != FigureSpec::Better::ByGoal) return spec.better == FigureSpec::Better::Higher;
  const Result* row = measured.example();
  const bool minimize =
      row && row->target.is_object() && row->target.contains("goal") && row->target.at("goal") == "minimize";
  return !minimize;
}

Change change_of(Difference difference, bool higher_better) {
  switch (difference) {
    case Difference::Larger: return higher_better ? Change::Better : Change::Worse;
    case Difference::Smaller: return higher_better ? Change::Worse : Change::Better;
    case Difference::None: return Change::Same;
    case Difference::Inconclusive: return Change::Inconclusive;
  }
  return Change::Inconclusive;
}

std::string word_of(Change change, const FigureSpec& spec) {
  if (change == Change::Same) return "no difference shown";
  if (change == Change::Inconclusive) return "inconclusive";
  const bool better = change == Change::Better;
  switch (spec.kind) {
    case FigureSpec::Kind::Seconds:
    case FigureSpec::Kind::Rate: return better ? "faster" : "slower";
    case FigureSpec::Kind::Bytes: return better ? "less memory" : "more memory";
    case FigureSpec::Kind::Joules: return better ? "less energy" : "more energy";
    default: return better ? "better" : "worse";
  }
}

FigureChange compare_figure(const FigureSpec& spec, const CaseSummary& baseline, const CaseSummary& measured,
                            const Thresholds& thresholds) {
  FigureChange out;
  out.figure = spec.key;
  if (const Result* row = measured.example()) out.threshold = thresholds.percent(*row, spec.key);
  const double margin = out.threshold.value_or(kDefaultThresholdPercent) / 100;
  out.comparison = compare_values(baseline.values(spec.key), measured.values(spec.key), margin);
  out.change = change_of(out.comparison.difference, higher_is_better(spec, measured));
  out.word = word_of(out.change, spec);
  const auto& relative = out.comparison.relative;
  // A baseline of 0 has no percent; any change of it that is shown is beyond every threshold.
  out.regression =
      out.change == Change::Worse && out.threshold && (!relative || std::fabs(*relative) * 100 > *out.threshold);
  return out;
}

// The summaries of a run by case; rounds of several systems stay apart, and only the one with the most rounds is taken.
const CaseSummary* find_case_summary(const std::vector<CaseSummary>& summaries, const std::string& case_key) {
  const CaseSummary* best = nullptr;
  for (const CaseSummary& summary : summaries) {
    if (summary.case_key != case_key) continue;
    if (!best || summary.num_counted() > best->num_counted()) best = &summary;
  }
  return best;
}

void add_differences_of_setup(const CaseSummary& baseline, const CaseSummary& measured, CaseChange& out) {
  const Result* before = baseline.example();
  const Result* now = measured.example();
  if (baseline.system != measured.system) {
    out.remarks.push_back(fmt::format("measured on different systems: {} and {}", baseline.system, measured.system));
  }
  if (!before->config_hash().empty() && !now->config_hash().empty() &&
      baseline.config_hashes() != measured.config_hashes()) {
    out.remarks.push_back(fmt::format("the configuration is not the same ({:.12} and {:.12})", before->config_hash(),
                                      now->config_hash()));
  }
  if (before->figures.unit != now->figures.unit) {
    out.remarks.push_back(fmt::format("throughputs in different units, '{}' and '{}', are not compared",
                                      before->figures.unit, now->figures.unit));
  }
}

CaseChange compare_case(const std::string& key, const CaseSummary* baseline, const CaseSummary* measured,
                        const Thresholds& thresholds) {
  CaseChange out;
  out.case_key = key;
  for (const CaseSummary* side : {baseline, measured}) {
    if (!side) continue;
    for (std::string& remark : side->remarks()) out.remarks.push_back(std::move(remark));
  }
  if (!baseline)
    out.missing = "not in the baseline";
  else if (!measured)
    out.missing = "only in the baseline";
  else if (baseline->num_counted() == 0)
    out.missing = "no round of the baseline passed";
  else if (measured->num_counted() == 0) {
    out.missing = "no round passed, and the baseline's did";
    out.broken = true;
  }
  if (!out.missing.empty()) return out;
  add_differences_of_setup(*baseline, *measured, out);
  out.unit = measured->example()->figures.unit;
  const bool same_unit = out.unit == baseline->example()->figures.unit;
  for (const char* figure : kComparedFigures) {
    const FigureSpec& spec = *find_figure(figure);
    if (spec.kind == FigureSpec::Kind::Rate && !same_unit) continue;
    if (!baseline->figure(figure) || !measured->figure(figure)) continue;
    out.figures.push_back(compare_figure(spec, *baseline, *measured, thresholds));
  }
  if (out.figures.empty()) out.missing = "no figure that both have";
  return out;
}

Json number_json(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json figure_json(const FigureChange& change) {
  const Comparison& c = change.comparison;
  return {{"figure", change.figure},
          {"change", change_name(change.change)},
          {"word", change.word},
          {"reason", c.reason},
          {"baseline", to_json(c.baseline)},
          {"measured", to_json(c.measured)},
          {"relative", number_json(c.relative)},
          {"relative_ci95", c.interval ? Json{c.interval->low, c.interval->high} : Json(nullptr)},
          {"p_value", number_json(c.p_value)},
          {"effect_size", number_json(c.effect_size)},
          {"degrees_of_freedom", number_json(c.degrees_of_freedom)},
          {"threshold_percent", number_json(change.threshold)},
          {"regression", change.regression}};
}

}  // namespace

int RunComparison::exit_code() const {
  if (num_regressions > 0 || num_broken > 0) return kExitFail;
  return num_compared > 0 ? kExitPass : kExitInvalid;
}

RunComparison compare_results(const std::vector<Result>& baseline, const std::vector<Result>& measured,
                              const Thresholds& thresholds) {
  const std::vector<CaseSummary> before = summarise(baseline);
  const std::vector<CaseSummary> now = summarise(measured);
  std::vector<std::string> keys;
  for (const auto* side : {&before, &now}) {
    for (const CaseSummary& summary : *side) {
      if (std::find(keys.begin(), keys.end(), summary.case_key) == keys.end()) keys.push_back(summary.case_key);
    }
  }
  RunComparison out;
  for (const std::string& key : keys) {
    out.cases.push_back(compare_case(key, find_case_summary(before, key), find_case_summary(now, key), thresholds));
    const CaseChange& change = out.cases.back();
    out.num_broken += change.broken ? 1 : 0;
    for (const FigureChange& figure : change.figures) {
      out.num_regressions += figure.regression ? 1 : 0;
      out.num_compared +=
          figure.comparison.baseline.n >= kMinRounds && figure.comparison.measured.n >= kMinRounds ? 1 : 0;
    }
  }
  return out;
}

std::string_view change_name(Change change) {
  switch (change) {
    case Change::Better: return "better";
    case Change::Worse: return "worse";
    case Change::Same: return "same";
    case Change::Inconclusive: return "inconclusive";
  }
  return "inconclusive";
}

Json to_json(const RunComparison& comparison) {
  Json cases = Json::array();
  for (const CaseChange& change : comparison.cases) {
    Json figures = Json::array();
    for (const FigureChange& figure : change.figures) figures.push_back(figure_json(figure));
    cases.push_back({{"case", change.case_key},
                     {"missing", change.missing.empty() ? Json(nullptr) : Json(change.missing)},
                     {"broken", change.broken},
                     {"unit", change.unit},
                     {"figures", figures},
                     {"remarks", change.remarks}});
  }
  return {{"schema", "assay/diff-v1"},
          {"compared", comparison.num_compared},
          {"regressions", comparison.num_regressions},
          {"broken", comparison.num_broken},
          {"cases", cases}};
}

}  // namespace assay
