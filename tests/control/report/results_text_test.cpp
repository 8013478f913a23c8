#include "report/results_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../results/run_folders.h"

using namespace assay;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

std::vector<Result> three_rounds() {
  std::vector<Result> rows;
  for (double value : {99.0, 100.0, 101.0}) {
    rows.push_back(result_of("r1", "s" + std::to_string(rows.size() + 1), value));
    rows.back().round = static_cast<int>(rows.size());
    rows.back().figures.values["final_accuracy"] = 0.9;
    rows.back().figures.values["peak_memory_bytes"] = 1 << 30;
    rows.back().figures.values["total_memory_bytes"] = 4.0 * (1 << 30);
    rows.back().figures.precision = "float32";
  }
  return rows;
}

}  // namespace

TEST(ResultsText, HasFlagPerfsColumns) {
  const std::string text = markdown_results(summarise(three_rounds()));
  EXPECT_THAT(
      text,
      HasSubstr(
          "| config | precision | fix_hp | e2e_time | p_whole | p_train | p_core | acc | mem(used/total) | MFU |\n"));
  // t(0.975, 2) / sqrt(3) * 1 = 2.48
  EXPECT_THAT(
      text,
      HasSubstr(
          "| simplenet:libtorch:cpu:1:1:3 | float32 | - | 10.001 ± 0.25 | - | 100 ± 2.5 images/s | - | 0.9000 ± 0 "
          "| 1.00 GiB / 4.00 GiB | - |\n"));
  EXPECT_THAT(text, HasSubstr("MFU = FLOPs"));
  EXPECT_THAT(text, Not(HasSubstr("[^1]")));
  EXPECT_THAT(text, Not(HasSubstr("efficiency")));
}

TEST(ResultsText, ShowsFootnotesAndScaling) {
  std::vector<Result> rows = three_rounds();
  rows[0].outcome = Outcome::Error;
  rows[0].reason = "broke | <b>badly</b>";
  rows.push_back(result_of("r1", "s9", 150));
  rows.back().case_key = "simplenet:libtorch:cpu:1:2:3";
  rows.back().nproc = 2;
  const std::string text = markdown_results(summarise(rows));
  EXPECT_THAT(text, HasSubstr("| simplenet:libtorch:cpu:1:1:3 [^1] |"));
  EXPECT_THAT(text, HasSubstr("\n[^1]: r1 round 1 did not pass"));
  EXPECT_THAT(text, Not(HasSubstr("<b>")));
  EXPECT_THAT(text, HasSubstr("| 74.6 % |")) << "150 over 2 * 100.5";
  EXPECT_THAT(text, HasSubstr("efficiency = (throughput of N processes / throughput of B processes) / (N / B)"));
}

TEST(ResultsText, ShowsACaseWithoutAGoodRound) {
  std::vector<Result> rows = {result_of("r1", "s1", 5)};
  rows[0].outcome = Outcome::Error;
  EXPECT_THAT(markdown_results(summarise(rows)), HasSubstr(" [^1] | - | - | - | - | - | - | - | - | - |"));
}

TEST(ResultsText, ShowsTheHistory) {
  std::vector<Result> rows = three_rounds();
  rows[1].suspect = {"busy"};
  rows[2].run = "\x1b[31mred";
  const std::string text = history_text(rows, {});
  EXPECT_THAT(text, HasSubstr("99 images/s"));
  EXPECT_THAT(text, HasSubstr("suspect"));
  EXPECT_THAT(text, HasSubstr("2 of 3 rounds count"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(ResultsText, ShowsADiff) {
  std::vector<Result> slower = three_rounds();
  for (Result& row : slower) row.figures.values["p_train"] *= 0.5;
  const std::string text = diff_text(compare_results(three_rounds(), slower, {}), {});
  EXPECT_THAT(text, HasSubstr("slower, beyond 5 %"));
  EXPECT_THAT(text, HasSubstr("-50.0 %"));
  EXPECT_THAT(text, HasSubstr("no difference shown"));
  EXPECT_THAT(text, HasSubstr("1 regression beyond the threshold"));
  EXPECT_THAT(diff_text(compare_results({}, slower, {}), {}), HasSubstr("nothing could be compared"));
}
