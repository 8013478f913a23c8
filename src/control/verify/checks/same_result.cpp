// {"type": "same_result", "measured": FILE, "baseline": FILE, "key": KEY, "max_relative": X}: KEY of the last results
// differs by at most X, relative to the baseline.
#include <fmt/format.h>

#include <cmath>

#include "verify/checks/all.h"

namespace assay::checks {

namespace {

class SameResult : public CheckBody {
 public:
  explicit SameResult(JsonFields& options)
      : measured_(options.text("measured")),
        baseline_(options.text("baseline")),
        key_(options.text("key")),
        limit_(options.finite("max_relative")) {}

  Verdict judge(const Evidence& evidence) const override {
    const double measured = measured_figure(evidence, measured_, key_);
    const double baseline = measured_figure(evidence, baseline_, key_);
    const double relative = measured == baseline ? 0 : std::fabs(measured - baseline) / std::fabs(baseline);
    return {.name = fmt::format("{} agrees", key_),
            .outcome = relative <= limit_ ? Outcome::Pass : Outcome::Fail,  // NaN fails
            .reason = fmt::format("{:.4f} against {:.4f}: {:.3f} % apart (limit {:.3f} %)", measured, baseline,
                                  100 * relative, 100 * limit_),
            .figures = {{"measured", json_number(measured)},
                        {"baseline", json_number(baseline)},
                        {"relative", json_number(relative)}}};
  }

 private:
  std::string measured_, baseline_, key_;
  double limit_;
};

}  // namespace

std::unique_ptr<const CheckBody> parse_same_result(JsonFields& options) {
  return std::make_unique<SameResult>(options);
}

}  // namespace assay::checks
