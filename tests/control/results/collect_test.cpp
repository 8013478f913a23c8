#include "results/collect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "run_folders.h"

using namespace assay;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace {

class CollectTest : public ::testing::Test {
 protected:
  Result only_row(const RunMaker::Round& round) {
    const std::vector<Result> rows = collect_results(maker_.make({round}));
    EXPECT_EQ(rows.size(), 1u);
    return rows.empty() ? Result{} : rows[0];
  }
  static Record finished(Json data) {
    Record record;
    record.type = Record::Type::Event;
    record.name = keys::kFinished;
    record.data = std::move(data);
    return record;
  }
  TempFolder folder_;
  RunMaker maker_{folder_.path() / "runs"};
};

}  // namespace

TEST_F(CollectTest, ReadsANativeResult) {
  const Result row = only_row({.records = {result_record({{"e2e_time", 12.0},
                                                          {"p_train", 800},
                                                          {"unit", "images/s"},
                                                          {"final_accuracy", 0.9},
                                                          {"peak_memory_bytes", 5000},
                                                          {"target", {{"metric", "accuracy"}, {"value", 0.86}}},
                                                          {"hashes", {{"case", "abc"}}}})}});
  EXPECT_EQ(row.case_key, "simplenet:libtorch:cpu:1:1:3");
  EXPECT_EQ(row.round, 1);
  EXPECT_EQ(row.outcome, Outcome::Pass);
  EXPECT_EQ(row.figures.value("e2e_time"), 12.0) << "the program's, not the wall time";
  EXPECT_EQ(row.figures.value("p_train"), 800);
  EXPECT_EQ(row.figures.value("peak_memory_bytes"), 5000);
  EXPECT_EQ(row.figures.metric, "accuracy");
  EXPECT_EQ(row.config_hash(), "abc");
  EXPECT_GT(row.started_us, 0);
  EXPECT_EQ(row.hosts.size(), 1u);
  EXPECT_NE(row.system, "");
  EXPECT_GT(row.figures.value("total_memory_bytes").value_or(0), 1e6);
  EXPECT_TRUE(row.suspect.is_null());
}

TEST_F(CollectTest, TranslatesAForeignResult) {
  Record summary;
  summary.type = Record::Type::Metrics;
  summary.step = std::vector<int64_t>{};
  summary.data = {{"train.total_ips", 500.0}, {"val.top1", 0.75}};
  const Result row =
      only_row({.records = {summary, finished({{"training_images_per_second", 450.0}, {"e2e_time", 9}})}});
  EXPECT_EQ(row.figures.value("p_train"), 500);
  EXPECT_EQ(row.figures.value("p_whole"), 450);
  EXPECT_EQ(row.figures.value("final_accuracy"), 0.75);
  EXPECT_EQ(row.figures.value("e2e_time"), 9);
  EXPECT_EQ(row.figures.unit, "images/s");
}

TEST_F(CollectTest, TakesTheWallTimeOfASilentProgram) {
  const Result row = only_row({});
  EXPECT_EQ(row.figures.value("e2e_time"), 20);
  EXPECT_EQ(row.figures.value("peak_memory_bytes"), 1 << 20);
  EXPECT_FALSE(row.figures.value("p_train"));
  EXPECT_FALSE(row.figures.value("mfu")) << "never 0";
  EXPECT_TRUE(row.step_time.is_null());
  EXPECT_TRUE(to_json(row)["mfu"].is_null());
}

TEST_F(CollectTest, ReadsLogLinesWithoutAResult) {
  std::vector<Record> records;
  for (int i = 1; i <= 3; ++i) {
    Record record;
    record.type = Record::Type::Metrics;
    record.step = {{1, i}};
    record.data = {{"train.ips", 100.0}, {"batch_cost", 0.25}};
    records.push_back(record);
  }
  Record evaluation;
  evaluation.type = Record::Type::Metrics;
  evaluation.step = {{1}};
  evaluation.data = {{"val.metric", 0.8}};
  records.push_back(evaluation);
  const Result row = only_row({.records = records});
  EXPECT_EQ(row.figures.value("p_train"), 100);
  EXPECT_EQ(row.figures.value("final_accuracy"), 0.8);
  EXPECT_EQ(row.figures.value("step_time_p50"), 0.25);
  EXPECT_EQ(row.step_time["n"], 2) << "the first is warm-up";
}

TEST_F(CollectTest, PublishesNoGarbage) {
  const Result text = only_row({.records = {finished({{"final_accuracy", "80.83.2%"}, {"e2e_time", -4}})}});
  EXPECT_FALSE(text.figures.value("final_accuracy"));
  EXPECT_EQ(text.figures.value("e2e_time"), 20) << "the wall time instead of one that cannot be";
  EXPECT_THAT(text.figures.warnings, Contains(HasSubstr("80.83.2%")));
  const Result lines = only_row({.raw_records = "\x01garbage\nmore\n{\"type\":1}\n"});
  EXPECT_THAT(lines.figures.warnings, Contains(HasSubstr("records.jsonl")));
  EXPECT_EQ(lines.figures.value("e2e_time"), 20);
  const Result odd = only_row({.records = {finished(Json::array({1, 2})), finished("text"), result_record(nullptr)}});
  EXPECT_EQ(odd.figures.value("e2e_time"), 20);
}

TEST_F(CollectTest, MarksDisturbedRoundsAsSuspect) {
  const Result row = only_row(
      {.disturbance = {{"suspect", {"steal was 20 %", 7}}, {"summary", {{"steal", 0.2}, {"energy_j", 50.5}}}}});
  EXPECT_EQ(row.figures.value("energy_joules"), 50.5);
  EXPECT_EQ(row.suspect, Json({"steal was 20 %"}));
  EXPECT_EQ(row.monitor["steal"], 0.2);
  EXPECT_TRUE(row.is_suspect());
  const Result calm = only_row({.disturbance = {{"suspect", Json::array()}, {"summary", {{"steal", 0}}}}});
  EXPECT_FALSE(calm.is_suspect());
  EXPECT_TRUE(calm.suspect.is_null());
  EXPECT_FALSE(only_row({.disturbance = "what?"}).is_suspect());
}

TEST_F(CollectTest, SeparatesAttempts) {
  Record begin;
  begin.type = Record::Type::Event;
  begin.name = keys::kInitStart;
  const Result row = only_row({.records = {begin, finished({{"init_time", 99}}), begin, finished({{"e2e_time", 3}})}});
  EXPECT_FALSE(row.figures.value("init_time"));
  EXPECT_EQ(row.figures.value("e2e_time"), 3);
}

TEST_F(CollectTest, KnowsWhichStepsMeasureACase) {
  const RunMaker::Round plain{.case_key = ""};
  EXPECT_EQ(collect_results(maker_.make({plain}, "resnet")).size(), 1u);
  EXPECT_THAT(collect_results(maker_.make({plain, plain}, "resnet")), IsEmpty()) << "compared, not repeated";
  EXPECT_THAT(collect_results(maker_.make({plain}, "")), IsEmpty());
  const RunMaker::Round evaluation{.case_key = "", .kind = StepKind::Evaluate};
  EXPECT_EQ(collect_results(maker_.make({plain, evaluation}, "resnet")).size(), 1u);
  EXPECT_THAT(collect_results(maker_.make({{.outcome = Outcome::Skipped}})), IsEmpty());
  EXPECT_EQ(collect_results(maker_.make({{.outcome = Outcome::Error, .reason = "x"}})).at(0).reason, "x");
}

TEST_F(CollectTest, TakesPrecisionVendorAndChangesFromTheConfiguration) {
  const Json config = {{"division", "open"},
                       {"hash", "h1"},
                       {"target", {{"metric", "accuracy"}, {"value", 0.9}, {"goal", "maximize"}}},
                       {"config",
                        {{"Engine", {{"mix_precision", {{"enable", true}, {"dtype", "float16"}}}}},
                         {"Global", {{"local_batch_size", 64}, {"seed", 1}}}}},
                       {"origins",
                        {{"Global.local_batch_size", "vendors/acme/simplenet/config_A100x1x1.yaml:3"},
                         {"Global.seed", "cases/simplenet/case.yaml:9"}}}};
  const Result row = only_row({.files = {{"config.json", config}}});
  EXPECT_EQ(row.figures.precision, "float16");
  EXPECT_EQ(row.figures.fix_hp, "local_batch_size=64");
  EXPECT_EQ(row.vendor, "acme");
  EXPECT_EQ(row.division, "open");
  EXPECT_EQ(row.config_hash(), "h1");
}

TEST_F(CollectTest, DropsAnMfuOfAnotherChipsPeak) {
  const auto mfu_with = [&](double peak) {
    maker_.site = site_of({{"launcher", "local"}, {"peak_flops", {{"float16", 256e12}, {"float32", 16e12}}}}, "test");
    return only_row({.records = {finished({{"mfu", 0.4}, {"peak_flops", peak}})}, .nproc = 8});
  };
  EXPECT_EQ(mfu_with(256e12).figures.value("mfu"), 0.4);
  EXPECT_EQ(mfu_with(8 * 16e12).figures.value("mfu"), 0.4) << "of all devices";
  const Result other = mfu_with(312e12);
  EXPECT_FALSE(other.figures.value("mfu"));
  EXPECT_THAT(other.figures.warnings, Contains(HasSubstr("3.12e+14")));
}

TEST_F(CollectTest, RejectsWhatIsNotARun) { EXPECT_THROW(collect_results(folder_.path()), DataError); }
