#include "results/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run_folders.h"

using namespace assay;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace {

std::vector<Result> summary_rounds(const std::vector<double>& throughputs) {
  std::vector<Result> out;
  for (double value : throughputs) {
    out.push_back(result_of("r1", "s" + std::to_string(out.size() + 1), value));
    out.back().round = static_cast<int>(out.size());
    out.back().started_us = static_cast<int64_t>(out.size());
  }
  return out;
}

Result of_size(int nnodes, int nproc, double throughput) {
  Result row = result_of("r1", std::to_string(nnodes) + "x" + std::to_string(nproc), throughput);
  row.case_key = "resnet:libtorch:A100:" + std::to_string(nnodes) + ":" + std::to_string(nproc) + ":1";
  row.nnodes = nnodes;
  row.nproc = nproc;
  return row;
}

}  // namespace

TEST(Summary, JoinsTheRoundsOfACaseInOneLine) {
  const std::vector<CaseSummary> all = summarise(summary_rounds({10, 20, 30}));
  ASSERT_EQ(all.size(), 1u);
  const CaseSummary& summary = all[0];
  EXPECT_EQ(summary.num_counted(), 3u);
  EXPECT_EQ(*summary.mean("p_train"), 20);
  EXPECT_EQ(*summary.figure("p_train")->deviation, 10);
  EXPECT_EQ(summary.figure("mfu"), nullptr);
  EXPECT_THAT(summary.remarks(), IsEmpty());
  EXPECT_EQ(to_json(summary)["figures"]["p_train"]["olympic_mean"], 20);
  EXPECT_TRUE(to_json(summary)["figures"]["mfu"].is_null());
}

TEST(Summary, ReportsWhatIsLeftOut) {
  std::vector<Result> rows = summary_rounds({10, 20, 900, 1});
  rows[2].suspect = {"steal was 20 %"};
  rows[3].outcome = Outcome::Error;
  rows[3].reason = "rank 1: killed";
  rows[1].figures.warnings = {"final_accuracy: '80.83.2%' is not a number; left out"};
  const CaseSummary summary = summarise(rows).at(0);
  EXPECT_EQ(*summary.mean("p_train"), 15);
  EXPECT_EQ(summary.num_failed, 1u);
  EXPECT_EQ(summary.num_suspect, 1u);
  EXPECT_THAT(
      summary.remarks(),
      ElementsAre(HasSubstr("round 2: final_accuracy: '80.83.2%'"), HasSubstr("round 3 is suspect and left out: steal"),
                  HasSubstr("round 4 did not pass (Error: rank 1: killed) and is left out")));
}

TEST(Summary, MarksSuspectRounds) {
  std::vector<Result> rows = summary_rounds({10, 20});
  for (Result& row : rows) row.suspect = {"busy"};
  const CaseSummary summary = summarise(rows).at(0);
  EXPECT_TRUE(summary.all_suspect);
  EXPECT_EQ(*summary.mean("p_train"), 15);
  EXPECT_THAT(summary.remarks(), Contains(HasSubstr("only because all rounds are")));
}

TEST(Summary, ShowsFailedRoundsOnly) {
  std::vector<Result> rows = summary_rounds({10});
  rows[0].outcome = Outcome::Error;
  const CaseSummary summary = summarise(rows).at(0);
  EXPECT_EQ(summary.num_counted(), 0u);
  EXPECT_EQ(summary.example(), nullptr);
  EXPECT_FALSE(summary.mean("p_train"));
}

TEST(Summary, SeparatesSystemsAndConfigurations) {
  std::vector<Result> rows = summary_rounds({10, 20});
  rows[1].system = "another";
  EXPECT_EQ(summarise(rows).size(), 2u);
  rows[1].system = rows[0].system;
  rows[1].hashes = {{"case", "def"}};
  EXPECT_THAT(summarise(rows).at(0).remarks(), Contains(HasSubstr("2 different configurations")));
}

TEST(Summary, ScalesAgainstTheSmallestSize) {
  const std::vector<Scaling> all = scaling_of(summarise({of_size(2, 8, 1280), of_size(1, 1, 100), of_size(1, 8, 720)}));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].family, "resnet:libtorch:A100");
  EXPECT_EQ(all[0].figure, "p_train");
  ASSERT_EQ(all[0].points.size(), 3u);
  EXPECT_EQ(all[0].points[0].efficiency, 1);
  EXPECT_DOUBLE_EQ(all[0].points[1].efficiency, 0.9);
  EXPECT_DOUBLE_EQ(all[0].points[2].efficiency, 0.8);
  const std::vector<Scaling> no_single = scaling_of(summarise({of_size(1, 2, 100), of_size(1, 8, 300)}));
  EXPECT_DOUBLE_EQ(no_single.at(0).points[1].efficiency, 0.75) << "of four times as many";
}

TEST(Summary, OmitsScalingWithoutTwoSizes) {
  EXPECT_THAT(scaling_of(summarise({of_size(1, 8, 100)})), IsEmpty());
  std::vector<Result> rows = {of_size(1, 1, 100), of_size(1, 8, 100)};
  rows[1].figures.unit = "tokens/s";
  EXPECT_THAT(scaling_of(summarise(rows)), IsEmpty());
  rows[1] = of_size(1, 8, 0);
  EXPECT_THAT(scaling_of(summarise(rows)), IsEmpty());
}
