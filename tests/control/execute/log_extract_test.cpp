#include "execute/log_extract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "record/keys.h"
#include "record/stream.h"

using namespace assay;
using testing::HasSubstr;

namespace {

std::vector<LogPattern> parsed(const Json& patterns) {
  std::vector<LogPattern> out;
  for (const Json& pattern : patterns) out.push_back(LogPattern::parse(pattern));
  return out;
}

class LogExtractTest : public ::testing::Test {
 protected:
  std::vector<Record> extract(const std::string& log, const Json& patterns) {
    write_file_atomic(folder_.path() / "rank0.log", log);
    extract_records(folder_.path(), parsed(patterns));
    return read_records(folder_.path() / "records.jsonl");
  }
  TempFolder folder_;
};

}  // namespace

TEST_F(LogExtractTest, FindsMetricsAndTheResultByPatterns) {
  const auto records = extract(
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

TEST_F(LogExtractTest, DropsWhatIsNotANumber) {
  const auto records =
      extract("top1: 80.83.2%\n", {{{"match", "top1: (.+)"}, {"names", {"final_accuracy"}}, {"kind", "result"}}});
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].type, Record::Type::Message);
  EXPECT_THAT(records[0].data["text"].get<std::string>(), HasSubstr("'80.83.2%' is not a number"));
}

TEST_F(LogExtractTest, ReadsDialectsWithoutAPattern) {
  const auto records = extract(
      "noise\n[PerfLog] {\"event\": \"STEP_END\", \"value\": {\"loss\": 0.5}, \"metadata\": {\"rank\": 0}}\n[PerfLog] "
      "{torn",
      Json::array());
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].data["loss"], 0.5);
}

TEST_F(LogExtractTest, CountsTheProgramsOwnRecords) {
  write_file_atomic(folder_.path() / "records.jsonl", "");
  EXPECT_TRUE(extract("step 1 loss 2\n", {{{"match", "loss ([0-9]+)"}, {"names", {"loss"}}}}).empty());
}

TEST_F(LogExtractTest, SeparatesRecordsOfAttempts) {
  const Json patterns = {{{"match", "step ([0-9]+)"}, {"names", {"step"}}},
                         {{"match", "top1: ([^ ]+)"}, {"names", {"final_accuracy"}}, {"kind", "result"}}};
  const std::string first = "step 1\nstep 2\ntop1: 0.1\n";
  EXPECT_EQ(extract(first, patterns).size(), 3u);
  EXPECT_EQ(extract(first, patterns).size(), 3u) << "a controller that was killed in between reads it again";
  discard_extracted(folder_.path());
  EXPECT_FALSE(fs::exists(folder_.path() / "records.jsonl"));
  write_file_atomic(folder_.path() / "rank0.log", first + "step 1\ntop1: 0.9\n");
  extract_records(folder_.path(), parsed(patterns), static_cast<int64_t>(first.size()));
  const auto records = read_records(folder_.path() / "records.jsonl");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].data[keys::kFinalAccuracy], 0.9);
}

TEST_F(LogExtractTest, KeepsRecordsOfTheProgram) {
  write_file_atomic(folder_.path() / "records.jsonl", "");
  discard_extracted(folder_.path());
  EXPECT_TRUE(fs::exists(folder_.path() / "records.jsonl"));
}

TEST_F(LogExtractTest, SurvivesLongLinesAndGarbage) {
  const std::string noise = std::string(1 << 20, 'a') + "\n" + std::string("\xff\xfe\0x", 4) + "\nloss 3\n";
  EXPECT_EQ(extract(noise, {{{"match", "(a*)*b|loss ([0-9]+)"}, {"names", {"x", "loss"}}}}).size(), 2u);
}
