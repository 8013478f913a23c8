#include "verify/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace assay;

namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kBoundless = std::numeric_limits<double>::infinity();

// Student's own data (1908), hours of sleep gained with two drugs; R ships them as `sleep`.
const std::vector<double> kSleep1 = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
const std::vector<double> kSleep2 = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};

}  // namespace

// The printed tables of Student's t, with more digits from an evaluation at 30 digits.
TEST(Statistics, MatchesPublishedQuantiles) {
  const struct {
    double p, df, t;
  } table[] = {{0.975, 1, 12.7062047361747},    {0.975, 2, 4.30265272974946}, {0.975, 3, 3.18244630528371},
               {0.975, 4, 2.77644510519779},    {0.975, 9, 2.26215716279821}, {0.975, 30, 2.04227245630124},
               {0.995, 4, 4.60409487134999},    {0.95, 2, 2.91998558035373},  {0.975, 2.5, 3.57465484200368},
               {0.975, 1000, 1.96233908082641}, {0.9999, 3, 22.2037422732042}};
  for (const auto& entry : table) {
    EXPECT_NEAR(student_t_quantile(entry.p, entry.df), entry.t, 1e-11 * entry.t) << entry.p << " " << entry.df;
    EXPECT_NEAR(student_t_quantile(1 - entry.p, entry.df), -entry.t, 1e-10 * entry.t) << "symmetric";
  }
  EXPECT_EQ(student_t_quantile(0.5, 7), 0);
}

TEST(Statistics, ComputesTheDistributionAndItsTails) {
  EXPECT_NEAR(student_t_cdf(1, 1), 0.75, 1e-14);
  EXPECT_NEAR(1 - student_t_cdf(2, 5), 0.0509697394149292, 1e-14);
  EXPECT_NEAR(student_t_cdf(-10, 3) / 0.00106419952920708, 1, 1e-12);
  EXPECT_NEAR(1 - student_t_cdf(0.1, 50), 0.460372106826485, 1e-13);
  EXPECT_NEAR(student_t_cdf(-40, 20) / 7.28734827715538e-21, 1, 1e-10) << "far out, in the small tail";
  EXPECT_EQ(student_t_cdf(0, 4), 0.5);
  EXPECT_EQ(student_t_cdf(-kBoundless, 4), 0);
  EXPECT_EQ(student_t_cdf(kBoundless, 4), 1);
}

TEST(Statistics, DescribesAFewRounds) {
  const Description d = describe_values({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(d.n, 8u);
  EXPECT_EQ(*d.mean, 5);
  EXPECT_NEAR(*d.deviation, std::sqrt(32.0 / 7), 1e-15);
  EXPECT_NEAR(*d.margin(), 2.36462425159278 * std::sqrt(32.0 / 7 / 8), 1e-10);  // t(0.975, 7)
  EXPECT_NEAR(d.interval->low + d.interval->high, 10, 1e-12);
  EXPECT_NEAR(*d.olympic_mean, 29.0 / 6, 1e-15) << "without one 2 and the 9";
  EXPECT_EQ(*d.median, 4.5);
  EXPECT_EQ(*d.smallest, 2);
  EXPECT_EQ(*d.largest, 9);
}

TEST(Statistics, OmitsWhatTheValuesCannotGive) {
  const Description none = describe_values({});
  EXPECT_EQ(none.n, 0u);
  EXPECT_FALSE(none.mean || none.deviation || none.interval || none.olympic_mean || none.median || none.smallest);
  const Description one = describe_values({3});
  EXPECT_EQ(*one.mean, 3);
  EXPECT_EQ(*one.median, 3);
  EXPECT_FALSE(one.deviation || one.interval || one.olympic_mean || one.margin());
  const Description two = describe_values({3, 5});
  EXPECT_TRUE(two.deviation && two.interval);
  EXPECT_FALSE(two.olympic_mean) << "nothing is left without the largest and the smallest";
  EXPECT_EQ(*describe_values({1, 2, 100}).olympic_mean, 2);
}

TEST(Statistics, IgnoresNotANumber) {
  const Description d = describe_values({kNoNumber, 1, kBoundless, 3, -kBoundless});
  EXPECT_EQ(d.n, 2u);
  EXPECT_EQ(d.num_non_finite, 3u);
  EXPECT_EQ(*d.mean, 2);
  EXPECT_EQ(describe_values({kNoNumber}).n, 0u);
  EXPECT_FALSE(percentile({kNoNumber, kBoundless}, 0.5));
  const Description equal = describe_values({0.1, 0.1, 0.1});
  EXPECT_EQ(*equal.mean, 0.1) << "to the last digit";
  EXPECT_EQ(*equal.deviation, 0);
  const Description huge = describe_values({1e308, -1e308, 1e308});
  EXPECT_FALSE(huge.deviation && !std::isfinite(*huge.deviation));
  EXPECT_FALSE(huge.mean && !std::isfinite(*huge.mean));
}

// numpy.percentile([15, 20, 35, 40, 50], [40, 90]): 29, 46
TEST(Statistics, InterpolatesPercentiles) {
  EXPECT_DOUBLE_EQ(*percentile({50, 15, 40, 20, 35}, 0.4), 29);
  EXPECT_DOUBLE_EQ(*percentile({50, 15, 40, 20, 35}, 0.9), 46);
  EXPECT_EQ(*percentile({50, 15, 40, 20, 35}, 0), 15);
  EXPECT_EQ(*percentile({50, 15, 40, 20, 35}, 1), 50);
  EXPECT_EQ(*percentile({7}, 0.99), 7);
  EXPECT_FALSE(percentile({1, 2}, 1.5));
  EXPECT_FALSE(percentile({1, 2}, kNoNumber));
  EXPECT_FALSE(percentile({}, 0.5));
}

TEST(Statistics, DescribesStepsWithoutTheWarmUp) {
  std::vector<double> seconds(100, 2.0);
  for (size_t i = 0; i < 10; ++i) seconds[i] = 50;  // warm-up
  for (size_t i = 98; i < 100; ++i) seconds[i] = 3;
  const StepTimes times = describe_steps(seconds);
  EXPECT_EQ(times.num_warmup, 10u);
  EXPECT_EQ(times.n, 90u);
  EXPECT_EQ(*times.p50, 2);
  EXPECT_EQ(*times.largest, 3);
  EXPECT_DOUBLE_EQ(*times.p99, 3) << "rank 88.11 of 0 to 89";
  EXPECT_DOUBLE_EQ(*times.jitter, 0.5);
  EXPECT_EQ(describe_steps({1.0}).n, 0u) << "the only one is warm-up";
  EXPECT_EQ(describe_steps({9.0, 1.0}).p50, 1.0);
  EXPECT_FALSE(describe_steps({}).p50);
  EXPECT_FALSE(describe_steps({1, 0, 0}).jitter) << "no share of nothing";
}

// R: t.test(extra ~ group, sleep): t = -1.8608, df = 17.776, p-value = 0.07939, -3.365 to 0.205.
TEST(Statistics, MatchesWelchsTestOfR) {
  const Comparison c = compare_values(kSleep1, kSleep2, 0.05);
  EXPECT_NEAR(*c.p_value, 0.0793941401873581, 1e-13);
  EXPECT_NEAR(*c.degrees_of_freedom, 17.7764735161785, 1e-11);
  EXPECT_NEAR(c.interval->low * 0.75, -0.205483230711711, 1e-12) << "relative to the mean, 0.75";
  EXPECT_NEAR(c.interval->high * 0.75, 3.36548323071171, 1e-11);
  EXPECT_NEAR(*c.effect_size, 0.797018500447446, 1e-13);
  EXPECT_NEAR(*c.relative, 1.58 / 0.75, 1e-13);
  EXPECT_EQ(c.difference, Difference::Inconclusive);
  EXPECT_NE(c.reason.find("more rounds"), std::string::npos) << c.reason;
}

TEST(Statistics, GivesOneOfFourAnswers) {
  const std::vector<double> base = {100, 101, 99, 100.5};
  EXPECT_EQ(compare_values(base, {110, 111, 109, 110}, 0.05).difference, Difference::Larger);
  EXPECT_EQ(compare_values(base, {90, 91, 89, 90}, 0.05).difference, Difference::Smaller);
  EXPECT_EQ(compare_values(base, {100.2, 101.1, 99.3, 100}, 0.05).difference, Difference::None);
  EXPECT_EQ(compare_values(base, {100.2, 101.1, 99.3, 100}, 0.001).difference, Difference::Inconclusive)
      << "not shown to be within so small a margin";
  EXPECT_EQ(compare_values(base, {80, 100, 120, 101}, 0.05).difference, Difference::Inconclusive);
}

TEST(Statistics, ClaimsNothingFromFewRounds) {
  for (const auto& [baseline, measured] :
       std::vector<std::pair<std::vector<double>, std::vector<double>>>{{{100}, {50}},
                                                                        {{100, 100}, {50, 50}},
                                                                        {{}, {1, 2, 3}},
                                                                        {{1, 2, 3}, {kNoNumber, kBoundless, 9}},
                                                                        {{100, 101, 99}, {50}}}) {
    const Comparison c = compare_values(baseline, measured, 0.05);
    EXPECT_EQ(c.difference, Difference::Inconclusive);
    EXPECT_FALSE(c.p_value);
    EXPECT_NE(c.reason.find("rounds"), std::string::npos) << c.reason;
  }
  EXPECT_EQ(*compare_values({100}, {50}, 0.05).relative, -0.5) << "the figures are shown all the same";
}

TEST(Statistics, HandlesValuesThatDoNotVary) {
  const Comparison same = compare_values({5, 5, 5}, {5, 5, 5}, 0.05);
  EXPECT_EQ(same.difference, Difference::None);
  EXPECT_FALSE(same.effect_size);
  EXPECT_EQ(compare_values({5, 5, 5}, {6, 6, 6}, 0.05).difference, Difference::Larger);
  EXPECT_EQ(compare_values({0, 0, 0}, {0, 0, 0}, 0.05).difference, Difference::None);
  const Comparison from_zero = compare_values({0, 0, 0}, {1, 2, 1}, 0.05);
  EXPECT_FALSE(from_zero.relative);
  EXPECT_EQ(compare_values({-1, 0, 1}, {-1, 0.5, 1}, 0.05).difference, Difference::Inconclusive);
}

TEST(Statistics, SurvivesExtremeValues) {
  for (const double scale : {1e-320, 1e-200, 1e200, 1e307}) {
    const Comparison c = compare_values({scale, 1.1 * scale, 0.9 * scale}, {scale, scale, 1.2 * scale}, 0.05);
    EXPECT_TRUE(!c.p_value || (*c.p_value >= 0 && *c.p_value <= 1)) << scale;
    EXPECT_TRUE(c.difference == Difference::Inconclusive || c.p_value) << scale;
  }
}
