// Every type of check, one line each: its name in plans is the name of its file and of its parse function.
#pragma once

#include "verify/check.h"

// clang-format off
#define ASSAY_ALL_CHECKS(CHECK) \
  CHECK(loss_falls)             \
  CHECK(not_applicable)         \
  CHECK(same_predictions)       \
  CHECK(same_result)            \
  CHECK(same_training)          \
  CHECK(same_weights)           \
  CHECK(target)
// clang-format on

namespace assay::checks {

// "target" is read by std::unique_ptr<const CheckBody> parse_target(JsonFields& options), in checks/target.cpp.
#define ASSAY_DECLARE_CHECK(name) std::unique_ptr<const CheckBody> parse_##name(JsonFields& options);
ASSAY_ALL_CHECKS(ASSAY_DECLARE_CHECK)
#undef ASSAY_DECLARE_CHECK

}  // namespace assay::checks
