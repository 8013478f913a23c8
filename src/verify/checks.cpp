#include "verify/checks.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/safetensors.h"
#include "base/text.h"
#include "record/keys.h"
#include "record/stream.h"
#include "verify/tensor_diff.h"
#include "verify/training_comparison.h"

namespace assay {

namespace {

// One check at work: its specification and where the evidence lies.
class Check {
 public:
  Check(const Json& spec, const std::filesystem::path& folder) : spec_(spec), folder_(folder) {}

  std::string text(const char* key) const { return spec_.at(key).get<std::string>(); }
  double number(const char* key) const { return number_of(spec_.at(key)); }
  const Json& value(const char* key) const { return spec_.at(key); }
  std::filesystem::path file(const std::string& name) const { return folder_ / name; }

  Json last_result(const std::string& name) const {
    const auto records = read_records(file(name));
    for (auto record = records.rbegin(); record != records.rend(); ++record) {
      if (record->type == Record::Type::Result) return record->data;
    }
    throw InvalidError(fmt::format("{} holds no result", name));
  }

  double measured(const std::string& file_name, const std::string& key) const {
    const Json result = last_result(file_name);
    if (!result.contains(key) || !is_number(result.at(key))) {
      throw InvalidError(fmt::format("{} was not measured in {}", key, file_name));
    }
    return number_of(result.at(key));
  }

 private:
  const Json& spec_;
  const std::filesystem::path& folder_;
};

double mean(const std::vector<double>& values, size_t begin, size_t end) {
  double sum = 0;
  for (size_t i = begin; i < end; ++i) sum += values[i];
  return sum / static_cast<double>(end - begin);
}

Verdict loss_falls(const Check& check) {
  std::vector<double> losses;
  for (const auto& [step, loss] : losses_by_step(read_records(check.file(check.text("records")))))
    losses.push_back(loss);
  if (losses.size() < 2) throw InvalidError(fmt::format("{} training losses are too few to compare", losses.size()));
  const auto broken = std::find_if(losses.begin(), losses.end(), [](double loss) { return !std::isfinite(loss); });
  Verdict verdict;
  verdict.name = "training loss falls";
  if (broken != losses.end()) {
    verdict.outcome = Outcome::Fail;
    verdict.reason =
        fmt::format("loss {} of {} is {}", broken - losses.begin() + 1, losses.size(), python_float(*broken));
    return verdict;
  }
  const size_t tenth = std::max<size_t>(1, losses.size() / 10);
  const double first = mean(losses, 0, tenth);
  const double last = mean(losses, losses.size() - tenth, losses.size());
  verdict.outcome = last < first ? Outcome::Pass : Outcome::Fail;
  verdict.reason = fmt::format("from {:.4f} to {:.4f}", first, last);
  verdict.figures = {{"first", first}, {"last", last}, {"losses", losses.size()}};
  return verdict;
}

Verdict target(const Check& check) {
  const std::string key = check.text("key");
  const double measured = check.measured(check.text("records"), key);
  const double wanted = check.number("value");
  const bool maximize = check.text("goal") == "maximize";
  const bool reached = maximize ? measured >= wanted : measured <= wanted;
  return {.name = fmt::format("{} reaches its target", key),
          .outcome = reached ? Outcome::Pass : Outcome::Fail,
          .reason = fmt::format("{:.4f} {} {:.4f}", measured,
                                maximize ? (reached ? ">=" : "<") : (reached ? "<=" : ">"), wanted),
          .figures = {{"measured", json_number(measured)}, {"target", wanted}}};
}

std::span<const float> floats(const TensorView& tensor, const std::filesystem::path& path) {
  if (tensor.dtype != "F32") {
    throw InvalidError(fmt::format("{}: tensor '{}' is {}, F32 is needed", path.string(), tensor.name, tensor.dtype));
  }
  return {reinterpret_cast<const float*>(tensor.bytes), tensor.num_bytes / sizeof(float)};
}

// How many classes each label chooses from; 0 for predictions that are no classes, such as maps.
size_t num_classes(const SafetensorsFile& file, const TensorView& tensor) {
  const std::vector<int64_t>& shape = tensor.shape;
  if (!file.has("labels") || shape.size() < 2) return 0;
  const bool chooses = file.at("labels").shape == std::vector<int64_t>(shape.begin(), shape.end() - 1);
  return chooses ? static_cast<size_t>(shape.back()) : 0;
}

Verdict same_predictions(const Check& check) {
  const auto path = check.file(check.text("measured"));
  const auto base_path = check.file(check.text("baseline"));
  const SafetensorsFile file(path);
  const SafetensorsFile base_file(base_path);
  const TensorView& a = file.at(check.text("tensor"));
  const TensorView& b = base_file.at(check.text("tensor"));
  if (a.shape != b.shape)
    throw InvalidError(fmt::format("shapes differ: {} and {}", fmt::join(a.shape, "x"), fmt::join(b.shape, "x")));
  const auto measured = floats(a, path);
  const auto baseline = floats(b, base_path);
  if (measured.empty()) throw InvalidError("no predictions to compare");
  const TensorDiff diff = tensor_diff(measured, baseline);
  bool good = diff.finite && diff.diff2 <= check.number("max_diff2");
  std::string reason = fmt::format("relative difference {:.1e} (limit {:.0e})", diff.diff2, check.number("max_diff2"));
  std::optional<double> top1;
  if (const size_t classes = num_classes(base_file, b)) {
    top1 = top1_agreement(measured, baseline, classes).value();
    good = good && *top1 >= check.number("min_top1");
    reason += fmt::format(", same class in {:.2f} % of {} (limit {:.2f} %)", 100 * *top1, measured.size() / classes,
                          100 * check.number("min_top1"));
  }
  if (!diff.finite) reason += "; not finite";
  return {.name = "predictions agree",
          .outcome = good ? Outcome::Pass : Outcome::Fail,
          .reason = reason,
          .figures = {{"max_abs", diff.max_abs},
                      {"diff1", json_number(diff.diff1)},
                      {"diff2", json_number(diff.diff2)},
                      {"diff3_max", diff.diff3_max},
                      {"diff3_mean", diff.diff3_mean},
                      {"diff4", diff.diff4 ? Json(*diff.diff4) : Json(nullptr)},
                      {"top1_agreement", top1 ? Json(*top1) : Json(nullptr)}}};
}

Verdict same_result(const Check& check) {
  const std::string key = check.text("key");
  const double measured = check.measured(check.text("measured"), key);
  const double baseline = check.measured(check.text("baseline"), key);
  const double limit = check.number("max_relative");
  const double relative = measured == baseline ? 0 : std::fabs(measured - baseline) / std::fabs(baseline);
  return {.name = fmt::format("{} agrees", key),
          .outcome = relative <= limit ? Outcome::Pass : Outcome::Fail,  // NaN fails
          .reason = fmt::format("{:.4f} against {:.4f}: {:.3f} % apart (limit {:.3f} %)", measured, baseline,
                                100 * relative, 100 * limit),
          .figures = {{"measured", json_number(measured)},
                      {"baseline", json_number(baseline)},
                      {"relative", json_number(relative)}}};
}

Verdict same_weights(const Check& check) {
  std::set<std::string> hashes;
  size_t count = 0;
  for (const Json& name : check.value("records")) {
    const Json result = check.last_result(name.get<std::string>());
    const Json hash = result.value("/hashes/weights"_json_pointer, Json(nullptr));
    if (!hash.is_string()) throw InvalidError(fmt::format("{} names no weights", name.get<std::string>()));
    hashes.insert(hash.get<std::string>());
    ++count;
  }
  if (count < 2) throw InvalidError("fewer than two results to compare");
  const std::string first = hashes.begin()->substr(0, 12);
  return {.name = "all results come from the same weights",
          .outcome = hashes.size() == 1 ? Outcome::Pass : Outcome::Fail,
          .reason = hashes.size() == 1 ? fmt::format("{} results from weights {}", count, first)
                                       : fmt::format("{} different weights in {} results", hashes.size(), count),
          .figures = {{"results", count}, {"weights", hashes.size()}}};
}

constexpr char kComparisonFile[] = "comparison.json";

Json comparison_for(const Check& check) {
  return compare_trainings({.measured = check.file(check.text("measured")),
                            .baseline = check.file(check.text("baseline")),
                            .num_steps = check.value("steps").get<int64_t>()});
}

Verdict same_training(const Check& check) {
  const auto folder = check.file(check.text("measured"));
  const auto status = folder / "status.json";
  if (!std::filesystem::exists(status)) throw InvalidError("was not run");
  const Json end = read_json_file(status);
  const std::string outcome = end.at("outcome").get<std::string>();
  if (outcome != outcome_name(Outcome::Pass)) {
    return {.name = "both train the same",
            .outcome = outcome == outcome_name(Outcome::Error) ? Outcome::Error : Outcome::Invalid,
            .reason = end.at("reason").get<std::string>(),
            .figures = {{"seconds", end.at("seconds")}}};
  }
  const auto kept = folder / kComparisonFile;
  Verdict verdict = judge_comparison(std::filesystem::exists(kept) ? read_json_file(kept) : comparison_for(check),
                                     check.number("max_relative"));
  verdict.figures["seconds"] = end.at("seconds");
  return verdict;
}

Verdict not_applicable(const Check& check) {
  return {.name = "not applicable", .outcome = Outcome::Skipped, .reason = check.text("reason")};
}

using CheckFunction = Verdict (*)(const Check&);
const std::map<std::string, CheckFunction>& registry() {
  static const std::map<std::string, CheckFunction> kChecks = {{"loss_falls", loss_falls},
                                                               {"target", target},
                                                               {"same_predictions", same_predictions},
                                                               {"same_result", same_result},
                                                               {"same_training", same_training},
                                                               {"not_applicable", not_applicable},
                                                               {"same_weights", same_weights}};
  return kChecks;
}

}  // namespace

std::vector<std::string> check_types() {
  std::vector<std::string> types;
  for (const auto& [type, function] : registry()) types.push_back(type);
  return types;
}

Verdict run_check(const Json& check, const std::filesystem::path& run_folder) {
  Verdict verdict;
  std::string type = "(none)";
  try {
    type = check.at("type").get<std::string>();
    const auto found = registry().find(type);
    if (found == registry().end())
      throw InvalidError(fmt::format("no check '{}'{}", type, did_you_mean(type, check_types())));
    verdict = found->second(Check(check, run_folder));
  } catch (const Json::exception&) {
    verdict = {.name = type, .outcome = Outcome::Invalid, .reason = "the check or its evidence lacks a field"};
  } catch (const Error& error) {
    verdict = {.name = type, .outcome = Outcome::Invalid, .reason = error.what()};
  }
  if (check.is_object() && check.contains("name") && check["name"].is_string())
    verdict.name = check["name"].get<std::string>();
  if (check.is_object() && check.contains("cell") && check["cell"].is_array() && check["cell"].size() == 2) {
    verdict.row = check["cell"][0].get<std::string>();
    verdict.column = check["cell"][1].get<std::string>();
  }
  return verdict;
}

void keep_evidence(const Json& check, const std::filesystem::path& run_folder) {
  if (!check.is_object() || check.value("type", "") != "same_training") return;
  try {
    const Check at_work(check, run_folder);
    const Json comparison = comparison_for(at_work);
    write_file_atomic(at_work.file(at_work.text("measured")) / kComparisonFile, to_pretty(comparison) + "\n");
  } catch (const Json::exception&) {
    return;  // the verdict will say so
  } catch (const InvalidError&) {
    return;
  } catch (const DataError&) {
    return;
  }
}

}  // namespace assay
