// {"type": "target", "records": FILE, "key": KEY, "goal": "maximize"|"minimize", "value": X}: KEY of the last result in
// FILE reaches X.
#include <fmt/format.h>

#include "verify/checks/all.h"

namespace assay::checks {

namespace {

class TargetReached : public CheckBody {
 public:
  explicit TargetReached(JsonFields& options)
      : records_(options.text("records")), key_(options.text("key")), value_(options.finite("value")) {
    const std::string goal = options.text("goal");
    if (goal != "maximize" && goal != "minimize") options.fail("goal", "must be maximize or minimize");
    maximize_ = goal == "maximize";
  }

  Verdict judge(const Evidence& evidence) const override {
    const double measured = measured_figure(evidence, records_, key_);
    const bool reached = maximize_ ? measured >= value_ : measured <= value_;
    const char* relation = maximize_ ? (reached ? ">=" : "<") : (reached ? "<=" : ">");
    return {.name = fmt::format("{} reaches its target", key_),
            .outcome = reached ? Outcome::Pass : Outcome::Fail,
            .reason = fmt::format("{:.4f} {} {:.4f}", measured, relation, value_),
            .figures = {{"measured", json_number(measured)}, {"target", value_}}};
  }

 private:
  std::string records_, key_;
  double value_;
  bool maximize_ = true;
};

}  // namespace

std::unique_ptr<const CheckBody> parse_target(JsonFields& options) { return std::make_unique<TargetReached>(options); }

}  // namespace assay::checks
