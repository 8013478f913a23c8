#include "results/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "run_folders.h"

using namespace assay;
using ::testing::Contains;
using ::testing::HasSubstr;

namespace {

std::vector<Result> compared_rounds(const std::vector<double>& throughputs, const std::string& run = "r1") {
  std::vector<Result> out;
  for (double value : throughputs) out.push_back(result_of(run, "s" + std::to_string(out.size() + 1), value));
  return out;
}

const FigureChange& figure_of(const RunComparison& comparison, const std::string& figure) {
  for (const FigureChange& change : comparison.cases.at(0).figures) {
    if (change.figure == figure) return change;
  }
  throw std::runtime_error("no " + figure);
}

}  // namespace

TEST(CompareResults, FindsARegressionBeyondItsThreshold) {
  const RunComparison c = compare_results(compared_rounds({100, 101, 99}), compared_rounds({80, 81, 79}), {});
  EXPECT_EQ(figure_of(c, "p_train").change, Change::Worse);
  EXPECT_EQ(figure_of(c, "p_train").word, "slower");
  EXPECT_TRUE(figure_of(c, "p_train").regression);
  EXPECT_EQ(figure_of(c, "e2e_time").change, Change::Worse) << "a larger time";
  EXPECT_EQ(c.exit_code(), kExitFail);
  EXPECT_EQ(compare_results(compared_rounds({80, 81, 79}), compared_rounds({100, 101, 99}), {}).exit_code(), kExitPass);
}

TEST(CompareResults, ShowsAChangeWithinTheThreshold) {
  const RunComparison c = compare_results(compared_rounds({100, 100.1, 99.9}), compared_rounds({98, 98.1, 97.9}), {});
  EXPECT_EQ(figure_of(c, "p_train").change, Change::Worse);
  EXPECT_FALSE(figure_of(c, "p_train").regression);
  EXPECT_EQ(c.exit_code(), kExitPass);
}

TEST(CompareResults, ClaimsNothingFromOneRoundEach) {
  const RunComparison c = compare_results(compared_rounds({100}), compared_rounds({10}), {});
  EXPECT_EQ(figure_of(c, "p_train").change, Change::Inconclusive);
  EXPECT_EQ(c.num_compared, 0u);
  EXPECT_EQ(c.exit_code(), kExitInvalid);
}

TEST(CompareResults, ReportsNothingInCommon) {
  std::vector<Result> other = compared_rounds({1, 2, 3});
  for (Result& row : other) row.case_key = "bert";
  const RunComparison c = compare_results(compared_rounds({1, 2, 3}), other, {});
  EXPECT_EQ(c.exit_code(), kExitInvalid);
  EXPECT_EQ(c.cases.at(0).missing, "only in the baseline");
  EXPECT_EQ(c.cases.at(1).missing, "not in the baseline");
  EXPECT_EQ(compare_results({}, {}, {}).exit_code(), kExitInvalid);
}

TEST(CompareResults, FindsACaseThatNoLongerPasses) {
  std::vector<Result> broken = compared_rounds({1, 2, 3});
  for (Result& row : broken) row.outcome = Outcome::Error;
  EXPECT_EQ(compare_results(compared_rounds({1, 2, 3}), broken, {}).exit_code(), kExitFail);
  EXPECT_EQ(compare_results(broken, compared_rounds({1, 2, 3}), {}).exit_code(), kExitInvalid);
}

TEST(CompareResults, IgnoresSuspectRounds) {
  std::vector<Result> disturbed = compared_rounds({100, 101, 99, 20, 21, 19});
  for (size_t i = 3; i < 6; ++i) disturbed[i].suspect = {"busy"};
  const RunComparison c = compare_results(compared_rounds({100, 101, 99}), disturbed, {});
  EXPECT_EQ(figure_of(c, "p_train").comparison.measured.n, 3u);
  EXPECT_EQ(c.exit_code(), kExitPass);
  EXPECT_THAT(c.cases[0].remarks, Contains(HasSubstr("suspect")));
}

TEST(CompareResults, DecidesWhatIsBetterByTheGoal) {
  std::vector<Result> before = compared_rounds({1, 1, 1});
  std::vector<Result> now = compared_rounds({1, 1, 1});
  for (size_t i = 0; i < 3; ++i) {
    before[i].figures.values["final_accuracy"] = 20 + 0.01 * static_cast<double>(i);
    now[i].figures.values["final_accuracy"] = 30 + 0.01 * static_cast<double>(i);
  }
  EXPECT_EQ(figure_of(compare_results(before, now, {}), "final_accuracy").change, Change::Better);
  for (Result& row : now) row.target = {{"metric", "perplexity"}, {"goal", "minimize"}};
  EXPECT_EQ(figure_of(compare_results(before, now, {}), "final_accuracy").change, Change::Worse);
}

TEST(CompareResults, ReportsDifferentThingsAsDifferent) {
  std::vector<Result> now = compared_rounds({100, 101, 99});
  for (Result& row : now) {
    row.system = "another";
    row.hashes = {{"case", "def"}};
    row.figures.unit = "tokens/s";
  }
  const RunComparison c = compare_results(compared_rounds({100, 101, 99}), now, {});
  EXPECT_THAT(c.cases[0].remarks, Contains(HasSubstr("different systems")));
  EXPECT_THAT(c.cases[0].remarks, Contains(HasSubstr("configuration is not the same")));
  EXPECT_THAT(c.cases[0].remarks, Contains(HasSubstr("different units")));
  EXPECT_THROW(figure_of(c, "p_train"), std::runtime_error) << "images and tokens have no ratio";
}

TEST(CompareResults, WritesJson) {
  const Json json = to_json(compare_results(compared_rounds({100, 101, 99}), compared_rounds({80, 81, 79}), {}));
  EXPECT_EQ(json["regressions"], 2);
  EXPECT_EQ(json["cases"][0]["figures"][0]["change"], "worse");
  EXPECT_EQ(json["cases"][0]["figures"][0]["relative_ci95"].size(), 2u);
}
