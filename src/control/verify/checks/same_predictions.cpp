// {"type": "same_predictions", "measured": FILE, "baseline": FILE, "tensor": NAME, "max_diff2": X, "min_top1": Y}: two
// safetensors files hold the same predictions: diff2 at most X. Where the baseline's labels have the tensor's shape
// without its last extent, that extent is the classes, and at least a share Y of rows has the same top class.
#include <fmt/format.h>

#include <span>

#include "base/error.h"
#include "formats/safetensors.h"
#include "verify/checks/all.h"
#include "verify/tensor_diff.h"

namespace assay::checks {

namespace {

std::span<const float> floats_of(const TensorView& tensor, const std::filesystem::path& path) {
  if (tensor.dtype != "F32") {
    throw InvalidError(fmt::format("{}: tensor '{}' is {}, F32 is needed", path.string(), tensor.name, tensor.dtype));
  }
  return {reinterpret_cast<const float*>(tensor.bytes), tensor.num_bytes / sizeof(float)};
}

// How many classes each label chooses from; 0 for predictions that are not classes, such as maps.
size_t num_classes(const SafetensorsFile& file, const TensorView& tensor) {
  const std::vector<int64_t>& shape = tensor.shape;
  if (!file.has("labels") || shape.size() < 2) return 0;
  const bool chooses = file.at("labels").shape == std::vector<int64_t>(shape.begin(), shape.end() - 1);
  return chooses ? static_cast<size_t>(shape.back()) : 0;
}

class SamePredictions : public CheckBody {
 public:
  explicit SamePredictions(JsonFields& options)
      : measured_(options.text("measured")),
        baseline_(options.text("baseline")),
        tensor_(options.text("tensor")),
        max_diff2_(options.finite("max_diff2")),
        min_top1_(options.finite("min_top1")) {}

  Verdict judge(const Evidence& evidence) const override {
    const auto path = evidence.path(measured_);
    const auto base_path = evidence.path(baseline_);
    const SafetensorsFile file(path);
    const SafetensorsFile base_file(base_path);
    const TensorView& a = file.at(tensor_);
    const TensorView& b = base_file.at(tensor_);
    if (a.shape != b.shape) {
      throw InvalidError(fmt::format("shapes differ: {} and {}", fmt::join(a.shape, "x"), fmt::join(b.shape, "x")));
    }
    const auto measured = floats_of(a, path);
    const auto baseline = floats_of(b, base_path);
    if (measured.empty()) throw InvalidError("no predictions to compare");
    const size_t classes = num_classes(base_file, b);
    std::optional<double> top1;
    if (classes > 0) top1 = top1_agreement(measured, baseline, classes).value();
    return verdict_of_difference(tensor_diff(measured, baseline), top1, classes > 0 ? measured.size() / classes : 0);
  }

 private:
  Verdict verdict_of_difference(const TensorDiff& diff, const std::optional<double>& top1, size_t num_rows) const {
    const bool same = diff.finite && diff.diff2 <= max_diff2_ && (!top1 || *top1 >= min_top1_);
    std::string reason = fmt::format("relative difference {:.1e} (limit {:.0e})", diff.diff2, max_diff2_);
    if (top1) {
      reason += fmt::format(", same class in {:.2f} % of {} (limit {:.2f} %)", 100 * *top1, num_rows, 100 * min_top1_);
    }
    if (!diff.finite) reason += "; not finite";
    Verdict verdict = {.name = "predictions agree",
                       .outcome = same ? Outcome::Pass : Outcome::Fail,
                       .reason = reason,
                       .figures = {{"max_abs", diff.max_abs},
                                   {"diff1", json_number(diff.diff1)},
                                   {"diff2", json_number(diff.diff2)},
                                   {"diff3_max", diff.diff3_max},
                                   {"diff3_mean", diff.diff3_mean},
                                   {"diff4", diff.diff4 ? Json(*diff.diff4) : Json(nullptr)},
                                   {"top1_agreement", nullptr}}};
    if (top1) verdict.figures["top1_agreement"] = *top1;
    return verdict;
  }

  std::string measured_, baseline_, tensor_;
  double max_diff2_, min_top1_;
};

}  // namespace

std::unique_ptr<const CheckBody> parse_same_predictions(JsonFields& options) {
  return std::make_unique<SamePredictions>(options);
}

}  // namespace assay::checks
