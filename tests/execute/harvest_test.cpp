#include "execute/harvest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "record/keys.h"
#include "record/stream.h"

using namespace assay;
using testing::HasSubstr;

namespace {

class HarvestTest : public ::testing::Test {
 protected:
  std::vector<Record> harvest(const std::string& log, const std::vector<Json>& patterns) {
    write_file_atomic(folder_.path() / "rank0.log", log);
    harvest_records(folder_.path(), patterns);
    return read_records(folder_.path() / "records.jsonl");
  }
  TempFolder folder_;
};

std::string complaint(const Json& pattern) {
  try {
    check_patterns({pattern});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "(none)";
}

}  // namespace

TEST_F(HarvestTest, PatternsFindMetricsAndTheResult) {
  const auto records = harvest(
      "starting\nstep 10 loss 0.5 speed 100.5 img/s\nstep 20 loss 0.25 speed 101 img/s\ntop1: 0.91\n",
      {{{"match", "step ([0-9]+) loss ([0-9.]+) speed ([0-9.]+)"}, {"names", {"step", "train.loss", "train.ips"}}},
       {{"match", "top1: ([^ ]+)"}, {"names", {"final_accuracy"}}, {"kind", "result"}}});
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[1].step, (std::vector<int64_t>{20}));
  EXPECT_EQ(records[1].data[keys::kTrainLoss], 0.25);
  EXPECT_EQ(records[1].data[keys::kGlobalStep], 20);
  EXPECT_EQ(records[2].type, Record::Type::Result);
  EXPECT_EQ(records[2].data[keys::kFinalAccuracy], 0.91);
}

TEST_F(HarvestTest, WhatIsNoNumberIsNotPublished) {
  const auto records =
      harvest("top1: 80.83.2%\n", {{{"match", "top1: (.+)"}, {"names", {"final_accuracy"}}, {"kind", "result"}}});
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].type, Record::Type::Message);
  EXPECT_THAT(records[0].data["text"].get<std::string>(), HasSubstr("'80.83.2%' is not a number"));
}

TEST_F(HarvestTest, DialectsNeedNoPattern) {
  const auto records = harvest(
      "noise\n[PerfLog] {\"event\": \"STEP_END\", \"value\": {\"loss\": 0.5}, \"metadata\": {\"rank\": 0}}\n[PerfLog] "
      "{torn",
      {});
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].data["loss"], 0.5);
}

TEST_F(HarvestTest, RecordsOfTheProgramItselfCount) {
  write_file_atomic(folder_.path() / "records.jsonl", "");
  EXPECT_TRUE(harvest("step 1 loss 2\n", {{{"match", "loss ([0-9]+)"}, {"names", {"loss"}}}}).empty());
}

TEST_F(HarvestTest, AnotherAttemptHasRecordsOfItsOwn) {
  const std::vector<Json> patterns = {{{"match", "step ([0-9]+)"}, {"names", {"step"}}},
                                      {{"match", "top1: ([^ ]+)"}, {"names", {"final_accuracy"}}, {"kind", "result"}}};
  const std::string first = "step 1\nstep 2\ntop1: 0.1\n";
  EXPECT_EQ(harvest(first, patterns).size(), 3u);
  EXPECT_EQ(harvest(first, patterns).size(), 3u) << "a controller that was killed in between reads it again";
  discard_harvest(folder_.path());
  EXPECT_FALSE(fs::exists(folder_.path() / "records.jsonl"));
  write_file_atomic(folder_.path() / "rank0.log", first + "step 1\ntop1: 0.9\n");
  harvest_records(folder_.path(), patterns, static_cast<int64_t>(first.size()));
  const auto records = read_records(folder_.path() / "records.jsonl");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].data[keys::kFinalAccuracy], 0.9);
}

TEST_F(HarvestTest, RecordsOfTheProgramAreNotDiscarded) {
  write_file_atomic(folder_.path() / "records.jsonl", "");
  discard_harvest(folder_.path());
  EXPECT_TRUE(fs::exists(folder_.path() / "records.jsonl"));
}

TEST_F(HarvestTest, LongLinesAndGarbageDoNoHarm) {
  const std::string noise = std::string(1 << 20, 'a') + "\n" + std::string("\xff\xfe\0x", 4) + "\nloss 3\n";
  EXPECT_EQ(harvest(noise, {{{"match", "(a*)*b|loss ([0-9]+)"}, {"names", {"x", "loss"}}}}).size(), 2u);
}

TEST(Patterns, MistakesAreNamed) {
  EXPECT_THAT(complaint({{"match", "("}, {"names", {"a"}}}), HasSubstr("is not an expression"));
  EXPECT_THAT(complaint({{"match", "(a)(b)"}, {"names", {"a"}}}), HasSubstr("has 2 groups and 1 names"));
  EXPECT_THAT(complaint({{"match", "a"}}), HasSubstr("has match: an expression"));
  EXPECT_THAT(complaint({{"match", "(a)"}, {"names", {"a"}}, {"kind", "x"}}), HasSubstr("kind is metrics or result"));
  EXPECT_EQ(complaint({{"match", "(a)"}, {"names", {"a"}}}), "(none)");
}
