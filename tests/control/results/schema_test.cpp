#include "results/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/files.h"

using namespace assay;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ResultSchema, ReadsOurOwnNames) {
  const Figures f = read_figures({{"e2e_time", 12.5},
                                  {"p_train", 800},
                                  {"unit", "images/s"},
                                  {"converged", true},
                                  {"mfu", nullptr},
                                  {"final_accuracy", 0.9},
                                  {"precision", "bfloat16"}},
                                 Voice::Ours);
  EXPECT_EQ(f.value("e2e_time"), 12.5);
  EXPECT_EQ(f.value("p_train"), 800);
  EXPECT_EQ(f.value("final_accuracy"), 0.9);
  EXPECT_FALSE(f.value("mfu"));
  EXPECT_EQ(f.converged, true);
  EXPECT_EQ(f.unit, "images/s");
  EXPECT_EQ(f.precision, "bfloat16");
  EXPECT_THAT(f.warnings, IsEmpty());
}

// What FlagPerf's bert and resnet50 print.
TEST(ResultSchema, ReadsFlagPerfsFinishedInfo) {
  const Figures bert = read_figures({{"e2e_time", 1800.5},
                                     {"training_sequences_per_second", 412.25},
                                     {"converged", true},
                                     {"final_accuracy", 0.71},
                                     {"final_mlm_accuracy", 0.72},
                                     {"raw_train_time", 1700},
                                     {"init_time", 90}},
                                    Voice::Foreign);
  EXPECT_EQ(bert.value("p_whole"), 412.25) << "samples over raw_train_time";
  EXPECT_FALSE(bert.value("p_train"));
  EXPECT_EQ(bert.unit, "sequences/s");
  EXPECT_EQ(bert.value("final_accuracy"), 0.71) << "the name that is ours counts";
  EXPECT_EQ(bert.metric, "");
  const Figures resnet = read_figures({{"e2e_time", 10},
                                       {"train_time", 9},
                                       {"train_no_eval_time", 8},
                                       {"pure_training_computing_time", 7},
                                       {"throughput(ips)_raw", 100},
                                       {"throughput(ips)_no_eval", 110},
                                       {"throughput(ips)_pure_compute", 120},
                                       {"final_acc1", 75.5},
                                       {"final_loss", 1.5}},
                                      Voice::Foreign);
  EXPECT_EQ(resnet.value("raw_train_time"), 9);
  EXPECT_EQ(resnet.value("no_eval_time"), 8);
  EXPECT_EQ(resnet.value("pure_compute_time"), 7);
  EXPECT_EQ(resnet.value("p_whole"), 100);
  EXPECT_EQ(resnet.value("p_train"), 110);
  EXPECT_EQ(resnet.value("p_core"), 120);
  EXPECT_EQ(resnet.value("final_accuracy"), 75.5);
  EXPECT_EQ(resnet.metric, "acc1");
}

TEST(ResultSchema, LeavesOutWhatIsNotANumberAndSaysSo) {
  const Figures f = read_figures({{"final_accuracy", "80.83.2%"},
                                  {"e2e_time", "12.5"},
                                  {"p_train", -3},
                                  {"p_core", "NaN"},
                                  {"p_whole", {1, 2}},
                                  {"mfu", 1.4},
                                  {"converged", "perhaps"},
                                  {"init_time", "1e999"}},
                                 Voice::Ours);
  EXPECT_FALSE(f.value("final_accuracy"));
  EXPECT_EQ(f.value("e2e_time"), 12.5) << "some loggers write every number as text";
  for (const char* key : {"p_train", "p_core", "p_whole", "mfu", "init_time"}) EXPECT_FALSE(f.value(key)) << key;
  EXPECT_FALSE(f.converged);
  EXPECT_EQ(f.warnings.size(), 7u);
  EXPECT_THAT(f.warnings, ::testing::Contains(HasSubstr("final_accuracy: '80.83.2%' is not a number")));
  EXPECT_THAT(f.warnings, ::testing::Contains(HasSubstr("p_train: '-3' is below 0")));
  EXPECT_THAT(f.warnings, ::testing::Contains(HasSubstr("mfu: '1.4' is not a share")));
}

TEST(ResultSchema, OmitsMfuWithoutItsPeak) {
  EXPECT_FALSE(read_figures({{"mfu", 0.4}}, Voice::Foreign).value("mfu"));
  EXPECT_THAT(read_figures({{"MFU", 0.4}}, Voice::Foreign).warnings, ElementsAre(HasSubstr("peak_flops")));
  EXPECT_EQ(read_figures({{"mfu", 0.4}, {"peak_flops", 312e12}}, Voice::Foreign).value("mfu"), 0.4);
  EXPECT_EQ(read_figures({{"mfu", 0.4}}, Voice::Ours).value("mfu"), 0.4);
}

TEST(ResultSchema, RejectsAnythingElse) {
  for (const Json& object : {Json(nullptr), Json("text"), Json(3), Json::array({1, 2}), Json::object()}) {
    const Figures f = read_figures(object, Voice::Foreign);
    EXPECT_TRUE(f.values.empty() && f.warnings.empty()) << object;
  }
}

TEST(ResultSchema, ReplacesWithALaterReport) {
  Figures f = read_figures({{"e2e_time", 1}, {"init_time", 2}}, Voice::Ours);
  merge_figures(f, read_figures({{"e2e_time", 3}, {"converged", false}}, Voice::Ours));
  EXPECT_EQ(f.value("e2e_time"), 3);
  EXPECT_EQ(f.value("init_time"), 2);
  EXPECT_EQ(f.converged, false);
}

TEST(ResultSchema, HasAConsistentTable) {
  std::set<std::string> names;
  for (const std::string& key : figure_keys()) EXPECT_TRUE(names.insert(key).second) << key;
  for (const FigureAlias& alias : figure_aliases()) {
    EXPECT_TRUE(names.insert(alias.name).second) << alias.name << " has two meanings";
    EXPECT_NE(find_figure(alias.key), nullptr) << alias.name;
  }
  EXPECT_EQ(find_figure("nothing"), nullptr);
}

TEST(ResultSchema, CountsAreWhole) {
  EXPECT_EQ(to_line(figure_json(*find_figure("steps"), 8.0)), "8");
  EXPECT_EQ(to_line(figure_json(*find_figure("seed"), -3.0)), "-3");
  EXPECT_EQ(to_line(figure_json(*find_figure("steps"), 1e300)), "1e+300");
  EXPECT_EQ(to_line(figure_json(*find_figure("p_train"), 8.0)), "8.0");
  EXPECT_EQ(to_line(figure_json(*find_figure("p_train"), std::nullopt)), "null");
}

TEST(ResultSchema, DocumentsEveryName) {
  const std::string page = read_file(fs::path(ASSAY_SOURCE_DIR) / "docs/guide/results.md");
  for (const FigureAlias& alias : figure_aliases()) {
    EXPECT_NE(page.find("`" + std::string(alias.name) + "`"), std::string::npos) << alias.name;
  }
}
