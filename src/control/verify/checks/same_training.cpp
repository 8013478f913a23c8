// {"type": "same_training", "measured": FOLDER, "baseline": FOLDER, "steps": N, "max_relative": X}: two steps trained
// alike for N steps: every loss, and all weights after every step, are at most X apart, as
// verify/training_comparison.h defines it. Keeps the comparison in the folder of the measured step, and is judged from
// it where it is.
#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "layout/run_layout.h"
#include "verify/checks/all.h"
#include "verify/training_comparison.h"

namespace assay::checks {

namespace {

class SameTraining : public CheckBody {
 public:
  explicit SameTraining(JsonFields& options)
      : trainings_{.measured = options.text("measured"),
                   .baseline = options.text("baseline"),
                   .num_steps = options.integer("steps", 1, INT32_MAX)},
        max_relative_(options.finite("max_relative")) {}

  Verdict judge(const Evidence& evidence) const override {
    const auto end = evidence.end_of(trainings_.measured);
    if (!end) throw InvalidError("was not run");
    const Json seconds = end->seconds ? Json(*end->seconds) : Json(nullptr);
    if (end->outcome != Outcome::Pass) {
      return {.name = "both train the same",
              .outcome = end->outcome == Outcome::Error ? Outcome::Error : Outcome::Invalid,
              .reason = end->reason,
              .figures = {{"seconds", seconds}}};
    }
    const auto kept = kept_file(evidence);
    const Json comparison =
        std::filesystem::exists(kept) ? read_json_file(kept) : compare_trainings(evidence, trainings_);
    Verdict verdict = judge_comparison(comparison, max_relative_);
    verdict.figures["seconds"] = seconds;
    return verdict;
  }

  void keep_evidence(const Evidence& evidence) const override {
    write_file_atomic(kept_file(evidence), to_pretty(compare_trainings(evidence, trainings_)) + "\n");
  }

 private:
  std::filesystem::path kept_file(const Evidence& evidence) const {
    return evidence.path(trainings_.measured) / layout::kComparison;
  }

  TwoTrainings trainings_;
  double max_relative_;
};

}  // namespace

std::unique_ptr<const CheckBody> parse_same_training(JsonFields& options) {
  return std::make_unique<SameTraining>(options);
}

}  // namespace assay::checks
