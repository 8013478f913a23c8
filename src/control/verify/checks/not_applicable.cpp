// {"type": "not_applicable", "reason": TEXT}: Skipped, for a place in a table where there is nothing to check.
#include "verify/checks/all.h"

namespace assay::checks {

namespace {

class NotApplicable : public CheckBody {
 public:
  explicit NotApplicable(JsonFields& options) : reason_(options.text("reason")) {}

  Verdict judge(const Evidence& /*evidence*/) const override {
    return {.name = "not applicable", .outcome = Outcome::Skipped, .reason = reason_};
  }

 private:
  std::string reason_;
};

}  // namespace

std::unique_ptr<const CheckBody> parse_not_applicable(JsonFields& options) {
  return std::make_unique<NotApplicable>(options);
}

}  // namespace assay::checks
