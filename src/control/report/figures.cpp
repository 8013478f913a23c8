#include "report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "base/time.h"
#include "record/keys.h"
#include "run/run_folder.h"

namespace assay {

namespace {

enum class FigureKind { Plain, Seconds, Bytes, Throughput, Fraction, Joules };

struct KnownKey {
  const char* key;
  const char* label;
  FigureKind kind;
  const char* group;
};

// The result of a case, in the order people read it.
constexpr std::array<KnownKey, 21> kKnownKeys = {{
    {"case", "case", FigureKind::Plain, "Quality"},
    {"step", "step of the plan", FigureKind::Plain, "Quality"},
    {keys::kFinalAccuracy, "final accuracy", FigureKind::Plain, "Quality"},
    {keys::kTarget, "target", FigureKind::Plain, "Quality"},
    {keys::kConverged, "converged", FigureKind::Plain, "Quality"},
    {keys::kSteps, "training steps", FigureKind::Plain, "Quality"},
    {keys::kPrecision, "precision", FigureKind::Plain, "Quality"},
    {keys::kFixHp, "fixed hyper-parameters", FigureKind::Plain, "Quality"},
    {keys::kSeed, "seed", FigureKind::Plain, "Quality"},
    {keys::kE2eTime, "end to end", FigureKind::Seconds, "Time"},
    {keys::kInitTime, "initialisation", FigureKind::Seconds, "Time"},
    {keys::kRawTrainTime, "training with evaluation", FigureKind::Seconds, "Time"},
    {keys::kNoEvalTime, "training without evaluation", FigureKind::Seconds, "Time"},
    {keys::kPureComputeTime, "pure compute", FigureKind::Seconds, "Time"},
    {keys::kThroughputWhole, "throughput with evaluation", FigureKind::Throughput, "Speed and resources"},
    {keys::kThroughputTrain, "throughput without evaluation", FigureKind::Throughput, "Speed and resources"},
    {keys::kThroughputCore, "throughput of pure compute", FigureKind::Throughput, "Speed and resources"},
    {keys::kMfu, "model FLOPS utilisation", FigureKind::Fraction, "Speed and resources"},
    {keys::kPeakMemory, "peak memory", FigureKind::Bytes, "Speed and resources"},
    {keys::kTotalMemory, "total memory", FigureKind::Bytes, "Speed and resources"},
    {keys::kEnergy, "energy", FigureKind::Joules, "Speed and resources"},
}};

const KnownKey* known(std::string_view key) {
  const auto found = std::find_if(kKnownKeys.begin(), kKnownKeys.end(), [&](const auto& k) { return k.key == key; });
  return found == kKnownKeys.end() ? nullptr : &*found;
}

std::string throughput_unit(const Json& result) {
  const auto unit = result.is_object() ? result.find(keys::kThroughputUnit) : result.end();
  if (!result.is_object() || unit == result.end() || !unit->is_string()) return "samples/s";
  return unit->get<std::string>();
}

std::string target_text(const Json& target) {
  if (!target.is_object()) return value_text(target);
  const auto value = target.find("value");
  if (value == target.end()) return value_text(target);
  const auto metric = target.find("metric");
  const std::string number = value_text(*value);
  return metric != target.end() && metric->is_string() ? metric->get<std::string>() + " " + number : number;
}

constexpr int kMaxFlattenDepth = 4;

void flatten(const std::string& prefix, const Json& value, int depth, std::vector<Figure>& out) {
  if (value.is_object() && !value.empty() && depth < kMaxFlattenDepth) {
    for (const auto& [name, inner] : value.items()) {
      flatten(prefix.empty() ? name : prefix + "." + name, inner, depth + 1, out);
    }
  } else {
    out.push_back({.label = prefix, .value = value_text(value), .note = ""});
  }
}

}  // namespace

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  const double size = std::fabs(value);
  if (value == 0) return "0";
  if (size >= 1e15 || size < 1e-3) return fmt::format("{:.3g}", value);
  if (value == std::floor(value) || size >= 1000) return fmt::format("{:.0f}", value);
  if (size >= 100) return fmt::format("{:.1f}", value);
  if (size >= 1) return fmt::format("{:.3f}", value);
  return fmt::format("{:.4f}", value);
}

std::string bytes_text(double bytes) {
  if (!std::isfinite(bytes) || bytes < 0) return kNotMeasured;
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f} B", bytes);
  return fmt::format("{:.{}f} {}", bytes, bytes < 10 ? 2 : 1, kUnits[unit]);
}

std::string when_text(int64_t time_us) {
  std::string text = utc_text(time_us);  // 2026-11-15T19:43:05.339754Z
  text = text.substr(0, text.rfind('.'));
  std::replace(text.begin(), text.end(), 'T', ' ');
  return text + " UTC";
}

std::string seconds_text(std::optional<double> seconds) {
  if (!seconds || !std::isfinite(*seconds) || *seconds < 0) return kNotMeasured;
  return duration_text(*seconds);
}

std::string value_text(const Json& value) {
  if (value.is_null()) return kNotMeasured;
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number_float()) return number_text(value.get<double>());
  if (value.is_string()) return value.get<std::string>();
  return to_line(value);
}

std::optional<double> run_seconds(const RunView& run) {
  if (!run.ended_us || *run.ended_us < run.started_us) return std::nullopt;
  return (static_cast<double>(*run.ended_us) - static_cast<double>(run.started_us)) / 1e6;
}

std::string exit_text(const StepView& step) {
  if (step.signal) return fmt::format("killed by signal {}", *step.signal);
  if (step.exit_code) return fmt::format("exit code {}", *step.exit_code);
  return kNotMeasured;
}

std::vector<std::string> step_notes(const StepView& step) {
  std::vector<std::string> notes;
  if (step.attempts > 1) notes.push_back(fmt::format("{} attempts", step.attempts));
  if (!step.restarts.empty()) notes.push_back(restarts_text(step.restarts));
  return notes;
}

std::optional<double> member_number(const Json& object, std::string_view key) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(std::string(key));
  if (found == object.end() || !is_number(*found)) return std::nullopt;
  return number_of(*found);
}

std::optional<double> result_number(const Result& result, std::string_view key) {
  return member_number(result.shown, key);
}

std::string result_text(const Result& result, std::string_view key) {
  const Json& shown = result.shown;
  const auto found = shown.is_object() ? shown.find(std::string(key)) : shown.end();
  if (!shown.is_object() || found == shown.end() || found->is_null()) return kNotMeasured;
  if (key == keys::kTarget) return target_text(*found);
  const KnownKey* entry = known(key);
  if (!entry || !is_number(*found)) return value_text(*found);
  const double value = number_of(*found);
  switch (entry->kind) {
    case FigureKind::Seconds: return std::isfinite(value) ? seconds_text(value) : number_text(value);
    case FigureKind::Bytes: return bytes_text(value);
    case FigureKind::Throughput: return number_text(value) + " " + throughput_unit(shown);
    case FigureKind::Fraction: return std::isfinite(value) ? fmt::format("{:.1f} %", 100 * value) : number_text(value);
    case FigureKind::Joules: return number_text(value) + " J";
    case FigureKind::Plain: break;
  }
  return value_text(*found);
}

std::optional<double> target_value(const Result& result) {
  const Json& shown = result.shown;
  if (!shown.is_object() || !shown.contains(keys::kTarget)) return std::nullopt;
  const Json& target = shown[keys::kTarget];
  return target.is_object() ? member_number(target, keys::kValue) : member_number(shown, keys::kTarget);
}

std::string metric_name(const Result& result) {
  const Json& shown = result.shown;
  if (shown.is_object() && shown.contains(keys::kTarget) && shown[keys::kTarget].is_object()) {
    const Json& target = shown[keys::kTarget];
    if (target.contains(keys::kMetric) && target[keys::kMetric].is_string()) return target[keys::kMetric];
  }
  return "accuracy";
}

std::string case_name(const Result& result, size_t index) {
  const Json& shown = result.shown;
  if (!shown.is_object() || !shown.contains("case") || !shown["case"].is_string()) {
    return fmt::format("case {}", index + 1);
  }
  const std::string name = shown["case"].get<std::string>();
  return result.step.empty() ? name : fmt::format("{} ({})", name, result.step);
}

std::vector<Figure> headline(const Result& result) {
  std::vector<Figure> figures;
  Figure accuracy{.label = metric_name(result), .value = result_text(result, keys::kFinalAccuracy), .note = ""};
  if (const auto target = target_value(result)) {
    accuracy.note = "target " + number_text(*target);
    if (result.figures.converged) accuracy.note += *result.figures.converged ? ", reached" : ", not reached";
  }
  figures.push_back(std::move(accuracy));
  const bool without_evaluation = result_number(result, keys::kThroughputTrain).has_value();
  figures.push_back({.label = "throughput",
                     .value = result_text(result, without_evaluation ? keys::kThroughputTrain : keys::kThroughputWhole),
                     .note = without_evaluation ? "training, evaluation not counted" : ""});
  figures.push_back({.label = "end-to-end time", .value = result_text(result, keys::kE2eTime), .note = ""});
  if (const auto training = result_number(result, keys::kRawTrainTime)) {
    figures.back().note = "of which training " + seconds_text(training);
  }
  figures.push_back({.label = "peak memory", .value = result_text(result, keys::kPeakMemory), .note = ""});
  if (result_number(result, keys::kTotalMemory)) {
    figures.back().note = "of " + result_text(result, keys::kTotalMemory);
  }
  if (result_number(result, keys::kMfu)) {
    figures.push_back({.label = "MFU", .value = result_text(result, keys::kMfu), .note = "of the device's peak FLOPS"});
  }
  return figures;
}

std::vector<FigureGroup> all_figures(const Result& result) {
  std::vector<FigureGroup> groups;
  if (!result.shown.is_object()) return groups;
  for (const KnownKey& entry : kKnownKeys) {
    if (!result.shown.contains(entry.key)) continue;
    if (groups.empty() || groups.back().title != entry.group) groups.push_back({.title = entry.group, .figures = {}});
    groups.back().figures.push_back({.label = entry.label, .value = result_text(result, entry.key), .note = entry.key});
  }
  FigureGroup others{.title = "Other figures", .figures = {}};
  std::vector<FigureGroup> nested;
  for (const auto& [name, value] : result.shown.items()) {
    if (known(name) || name == keys::kThroughputUnit) continue;
    if (value.is_object() && !value.empty()) {
      nested.push_back({.title = name, .figures = {}});
      flatten("", value, 0, nested.back().figures);
    } else {
      others.figures.push_back({.label = name, .value = value_text(value), .note = name});
    }
  }
  if (!others.figures.empty()) groups.push_back(std::move(others));
  groups.insert(groups.end(), nested.begin(), nested.end());
  return groups;
}

Tally tally_steps(const RunView& run) {
  Tally tally{.total = run.steps.size(), .passed = 0};
  for (const StepView& step : run.steps) tally.passed += step.outcome == Outcome::Pass ? 1 : 0;
  return tally;
}

Tally tally_verdicts(const RunView& run) {
  Tally tally{.total = run.verdicts.size(), .passed = 0};
  for (const Verdict& verdict : run.verdicts) tally.passed += verdict.outcome == Outcome::Pass ? 1 : 0;
  return tally;
}

}  // namespace assay
