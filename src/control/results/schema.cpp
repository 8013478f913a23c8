#include "results/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "record/keys.h"

namespace assay {

using Kind = FigureSpec::Kind;
using Better = FigureSpec::Better;

const std::vector<FigureSpec>& figure_specs() {
  static const std::vector<FigureSpec> kSpecs = {
      {keys::kE2eTime, Kind::Seconds, Better::Lower},
      {keys::kInitTime, Kind::Seconds, Better::Lower},
      {keys::kRawTrainTime, Kind::Seconds, Better::Lower},
      {keys::kNoEvalTime, Kind::Seconds, Better::Lower},
      {keys::kPureComputeTime, Kind::Seconds, Better::Lower},
      {keys::kThroughputWhole, Kind::Rate, Better::Higher},
      {keys::kThroughputTrain, Kind::Rate, Better::Higher},
      {keys::kThroughputCore, Kind::Rate, Better::Higher},
      {keys::kFinalAccuracy, Kind::Any, Better::ByGoal},
      {keys::kFinalLoss, Kind::Any, Better::Lower},
      {keys::kSteps, Kind::Count, Better::Neither},
      {keys::kNumSamples, Kind::Count, Better::Neither},
      {keys::kMfu, Kind::Fraction, Better::Higher},
      {keys::kPeakMemory, Kind::Bytes, Better::Lower},
      {keys::kTotalMemory, Kind::Bytes, Better::Neither},
      {keys::kEnergy, Kind::Joules, Better::Lower},
      {keys::kSeed, Kind::Any, Better::Neither},
      {keys::kStepTimeP50, Kind::Seconds, Better::Lower},
      {keys::kStepTimeP90, Kind::Seconds, Better::Lower},
      {keys::kStepTimeP99, Kind::Seconds, Better::Lower},
      {keys::kJitter, Kind::Any, Better::Lower},
  };
  return kSpecs;
}

const FigureSpec* find_figure(std::string_view key) {
  for (const FigureSpec& spec : figure_specs()) {
    if (key == spec.key) return &spec;
  }
  return nullptr;
}

std::vector<std::string> figure_keys() {
  std::vector<std::string> out;
  for (const FigureSpec& spec : figure_specs()) out.emplace_back(spec.key);
  return out;
}

Json figure_json(const FigureSpec& spec, const std::optional<double>& value) {
  if (!value) return nullptr;
  constexpr double kExact = 9007199254740992.0;  // 2^53: beyond it a double does not hold every whole number
  const bool counted =
      spec.kind == Kind::Count || spec.kind == Kind::Bytes || spec.key == std::string_view(keys::kSeed);
  if (counted && std::floor(*value) == *value && std::fabs(*value) <= kExact) return static_cast<int64_t>(*value);
  return *value;
}

// FlagPerf's finished_info (its training_..._per_second are samples over raw_train_time), the summaries of DLLogger's
// users, and tcap_dllogger's. docs/guide/results.md shows this table.
const std::vector<FigureAlias>& figure_aliases() {
  static const std::vector<FigureAlias> kAliases = {
      // FlagPerf
      {"train_time", keys::kRawTrainTime, "", ""},
      {"train_no_eval_time", keys::kNoEvalTime, "", ""},
      {"pure_training_computing_time", keys::kPureComputeTime, "", ""},
      {"throughput(ips)_raw", keys::kThroughputWhole, "", ""},
      {"throughput(ips)_no_eval", keys::kThroughputTrain, "", ""},
      {"throughput(ips)_pure_compute", keys::kThroughputCore, "", ""},
      {"training_sequences_per_second", keys::kThroughputWhole, "sequences/s", ""},
      {"training_images_per_second", keys::kThroughputWhole, "images/s", ""},
      {"training_tokens_per_second", keys::kThroughputWhole, "tokens/s", ""},
      {"training_samples_per_second", keys::kThroughputWhole, "samples/s", ""},
      {"training_items_per_second", keys::kThroughputWhole, "items/s", ""},
      {"final_mlm_accuracy", keys::kFinalAccuracy, "", "mlm_accuracy"},
      {"final_acc1", keys::kFinalAccuracy, "", "acc1"},
      {"final_acc", keys::kFinalAccuracy, "", "accuracy"},
      {"MFU", keys::kMfu, "", ""},
      // DLLogger's run summaries
      {"e2e_train_time", keys::kE2eTime, "", ""},
      {"total_time", keys::kE2eTime, "", ""},
      {"train.total_ips", keys::kThroughputTrain, "", ""},
      {keys::kTrainIps, keys::kThroughputTrain, "", ""},
      {"train_throughput", keys::kThroughputTrain, "", ""},
      {"throughput_train", keys::kThroughputTrain, "", ""},
      {"average_train_throughput", keys::kThroughputTrain, "", ""},
      {"train_samples_per_second", keys::kThroughputTrain, "samples/s", ""},
      {"throughput", keys::kThroughputTrain, "", ""},
      {"val.top1", keys::kFinalAccuracy, "", "top1"},
      {"top1", keys::kFinalAccuracy, "", "top1"},
      {"accuracy", keys::kFinalAccuracy, "", "accuracy"},
      {keys::kTrainPeakMemory, keys::kPeakMemory, "", ""},
      {keys::kTrainMfu, keys::kMfu, "", ""},
      {keys::kValLoss, keys::kFinalLoss, "", ""},
      // tcap_dllogger's
      {keys::kSummaryMetric, keys::kFinalAccuracy, "", ""},
      {keys::kValMetric, keys::kFinalAccuracy, "", ""},
      {keys::kSummaryBestMetric, keys::kFinalAccuracy, "", ""},
      {"global_steps", keys::kSteps, "", ""},
      {keys::kGlobalStep, keys::kSteps, "", ""},
      {"num_trained_samples", keys::kNumSamples, "", ""},
  };
  return kAliases;
}

std::optional<double> Figures::value(std::string_view key) const {
  const auto found = values.find(std::string(key));
  return found == values.end() ? std::nullopt : std::optional<double>(found->second);
}

namespace {

constexpr size_t kMaxShown = 60;  // bytes of a value in a warning
constexpr size_t kMaxText = 200;  // bytes of precision, fix_hp, unit

std::string shown(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : to_line(value);
  return fmt::format("'{}{}'", valid_utf8(text.substr(0, kMaxShown)), text.size() > kMaxShown ? "..." : "");
}

// "" when the number can be this figure.
std::string wrong_with(double number, Kind kind) {
  if (!std::isfinite(number)) return "is not finite";
  switch (kind) {
    case Kind::Seconds:
    case Kind::Rate:
    case Kind::Bytes:
    case Kind::Joules:
    case Kind::Count: return number < 0 ? "is below 0" : "";
    case Kind::Fraction: return number < 0 || number > 1 ? "is not a share between 0 and 1" : "";
    case Kind::Any: return "";
  }
  return "";
}

class Reading {
 public:
  Reading(const Json& object, Voice voice) : object_(object), voice_(voice) {}

  Figures figures() {
    for (const FigureSpec& spec : figure_specs()) take(spec.key, spec, nullptr);
    for (const FigureAlias& alias : figure_aliases()) take(alias.name, *find_figure(alias.key), &alias);
    take_converged();
    take_text("unit", out_.unit);
    take_text(keys::kPrecision, out_.precision);
    take_text(keys::kFixHp, out_.fix_hp);
    refuse_mfu_without_peak();
    return std::move(out_);
  }

 private:
  void warn(const std::string& name, const std::string& what) {
    out_.warnings.push_back(fmt::format("{}: {}; left out", name, what));
  }

  void take(const char* name, const FigureSpec& spec, const FigureAlias* alias) {
    const auto found = object_.find(name);
    if (found == object_.end() || found->is_null()) return;
    if (alias && out_.values.contains(spec.key)) return;  // a better name has told it
    std::optional<double> number;
    if (is_number(*found)) number = number_of(*found);
    // Loggers that write every value as text: the whole of it must be a number.
    if (!number && found->is_string()) number = parse_double(found->get_ref<const std::string&>());
    if (!number) return warn(name, shown(*found) + " is not a number");
    const std::string wrong = wrong_with(*number, spec.kind);
    if (!wrong.empty()) return warn(name, shown(*found) + " " + wrong);
    out_.values[spec.key] = *number;
    if (alias && *alias->unit) out_.unit = alias->unit;
    if (alias && *alias->metric) out_.metric = alias->metric;
  }

  void take_converged() {
    const auto found = object_.find("converged");
    if (found == object_.end() || found->is_null()) return;
    if (found->is_boolean())
      out_.converged = found->get<bool>();
    else if (*found == 0 || *found == 1)
      out_.converged = *found == 1;
    else if (found->is_string())
      out_.converged = parse_bool(found->get_ref<const std::string&>());
    if (!out_.converged) warn("converged", shown(*found) + " is neither true nor false");
  }

  void take_text(const char* name, std::string& out) {
    const auto found = object_.find(name);
    if (found == object_.end() || found->is_null()) return;
    const std::string text = found->is_string() ? found->get<std::string>() : to_line(*found);
    if (text.size() > kMaxText) return warn(name, fmt::format("has more than {} bytes", kMaxText));
    out = valid_utf8(text);
  }

  void refuse_mfu_without_peak() {
    if (voice_ == Voice::Ours || !out_.values.contains("mfu")) return;
    const auto peak = object_.find("peak_flops");
    const bool known = peak != object_.end() && peak->is_number() && peak->get<double>() > 0;
    if (known) {
      out_.stated_peak = peak->get<double>();
      return;
    }
    out_.values.erase("mfu");
    warn("mfu", "stated without the peak it is a share of (peak_flops)");
  }

  const Json& object_;
  Voice voice_;
  Figures out_;
};

}  // namespace

Figures read_figures(const Json& object, Voice voice) {
  return object.is_object() ? Reading(object, voice).figures() : Figures{};
}

void merge_figures(Figures& figures, Figures later) {
  for (const auto& [key, value] : later.values) figures.values[key] = value;
  if (later.converged) figures.converged = later.converged;
  if (later.stated_peak) figures.stated_peak = later.stated_peak;
  for (auto member : {&Figures::unit, &Figures::metric, &Figures::precision, &Figures::fix_hp}) {
    if (!(later.*member).empty()) figures.*member = later.*member;
  }
  figures.warnings.insert(figures.warnings.end(), later.warnings.begin(), later.warnings.end());
}

}  // namespace assay
