#include "verify/verdict.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "verify/tensor_diff.h"

using namespace assay;

TEST(Verdict, TakesTheWorst) {
  EXPECT_EQ(worst({Outcome::Pass, Outcome::Fail, Outcome::Error}), Outcome::Error);
  EXPECT_EQ(worst({Outcome::Pass, Outcome::Fail, Outcome::Invalid}), Outcome::Fail);
  EXPECT_EQ(worst({Outcome::Pass, Outcome::Invalid}), Outcome::Invalid);
  EXPECT_EQ(worst({Outcome::Pass, Outcome::Skipped}), Outcome::Pass);
  EXPECT_EQ(worst({Outcome::Skipped}), Outcome::Invalid) << "nothing was run";
  EXPECT_EQ(worst({}), Outcome::Invalid) << "nothing was run";
}

TEST(Verdict, MapsToExitCodes) {
  EXPECT_EQ(exit_code(Outcome::Pass), 0);
  EXPECT_EQ(exit_code(Outcome::Fail), 1);
  EXPECT_EQ(exit_code(Outcome::Error), 1);
  EXPECT_EQ(exit_code(Outcome::Invalid), 3);
}

TEST(Verdict, RoundTripsJson) {
  const Verdict verdict{.name = "n", .outcome = Outcome::Fail, .reason = "r", .figures = {{"x", nullptr}}};
  EXPECT_EQ(to_json(verdict_of(to_json(verdict))), to_json(verdict));
  EXPECT_THROW(outcome_of("pass"), DataError);
}

TEST(TensorDiff, FollowsItsFormulas) {
  // By hand: b = (1, -2, 4), e = (1.1, -2, 3).
  const std::vector<float> b = {1, -2, 4};
  const std::vector<float> e = {1.1f, -2, 3};
  const TensorDiff diff = tensor_diff(e, b);
  EXPECT_NEAR(diff.max_abs, 1, 1e-6);
  EXPECT_NEAR(diff.diff1, 1.1 / 7, 1e-6);
  EXPECT_NEAR(diff.diff2, std::sqrt((0.01 + 1) / 21), 1e-6);
  EXPECT_NEAR(diff.diff3_max, 0.25, 1e-6);
  EXPECT_NEAR(diff.diff3_mean, (0.1 + 0 + 0.25) / 3, 1e-6);
  EXPECT_NEAR(diff.diff4.value(), 0.5, 1e-12);
  EXPECT_TRUE(diff.finite);
}

TEST(TensorDiff, HandlesEdgeCases) {
  const std::vector<float> zero = {0, 0};
  const std::vector<float> one = {0, 1};
  EXPECT_EQ(tensor_diff(zero, zero).diff2, 0);
  EXPECT_EQ(tensor_diff(zero, zero).diff4, std::nullopt);
  EXPECT_TRUE(std::isinf(tensor_diff(one, zero).diff1));
  const std::vector<float> nan = {0, NAN};
  EXPECT_FALSE(tensor_diff(nan, one).finite);
  EXPECT_TRUE(tensor_diff(nan, nan).finite);
  EXPECT_EQ(top1_agreement({}, {}, 3), std::nullopt);
}
