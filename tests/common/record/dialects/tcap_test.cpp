#include <gtest/gtest.h>
#include <time.h>

#include <cstdlib>

#include "record/log_file.h"
#include "record/stream.h"

using namespace assay;

namespace {

// The specified lines are in local time; their writers were eight hours east.
class Tcap : public testing::Test {
 protected:
  Tcap() {
    ::setenv("TZ", "CST-8", 1);
    ::tzset();
  }
  ~Tcap() override {
    ::unsetenv("TZ");
    ::tzset();
  }
};

Record read_tcap(const std::string& line) {
  const LogContents contents = parse_log(line + "\n", "x");
  EXPECT_EQ(contents.records.size(), 1u);
  EXPECT_EQ(contents.num_unknown, 0u);
  return contents.records.at(0);
}

std::string write_tcap(const Record& record, const char* dialect = "tcap") {
  std::string text = to_log({record}, dialect_named(dialect));
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace

TEST_F(Tcap, ReadsAndWritesTheSpecifiedLine) {
  // 2024-06-11 09:09:05.439885 at +08:00 is 1718068145.439885.
  const std::string line =
      R"(TCAPPDLL {"timestamp": "1718068145.439885", "datetime": "2024-06-11 09:09:05.439885", "elapsedtime": "1.228824", )"
      R"("type": "LOG", "step": [1, 22], "data": "{'rank': '0', 'train.loss': '1.721'}"})";
  const Record record = read_tcap(line);
  Record expected;
  expected.type = Record::Type::Metrics;
  expected.time_us = 1718068145439885;
  expected.elapsed_us = 1228824;
  expected.step = {{1, 22}};
  expected.data = {{"train.loss", 1.721}};
  EXPECT_EQ(record, expected) << to_record_line(record);
  EXPECT_EQ(write_tcap(expected), line);
}

TEST_F(Tcap, KeepsTheTextOfNumbers) {
  // Formatted by its user, not by str(): read as a number, written as it was, also after a detour.
  const std::string line =
      R"(TCAPPDLL {"timestamp": "1718068145.439885", "datetime": "2024-06-11 09:09:05.439885", "elapsedtime": "1.228824", )"
      R"("type": "LOG", "step": [1, 22], "data": "{'train.loss': '0.70', 'rank': '3', 'note': \"it's\"}"})";
  const Record record = read_tcap(line);
  EXPECT_EQ(record.data.dump(), R"({"train.loss":0.7,"rank":3,"note":"it's"})");
  EXPECT_EQ(write_tcap(record), line);
  EXPECT_EQ(write_tcap(read_tcap(write_tcap(record, "perflog"))), line);
}

TEST_F(Tcap, ReadsInfoLines) {
  const std::string arguments =
      R"(INFO {"local_rank": 2, "datetime": "2024-06-11 09:09:05.439885", "type": "INFO", "data": {"lr": 0.1, "amp": true}})";
  const Record parameters = read_tcap(arguments);
  EXPECT_EQ(parameters.type, Record::Type::Parameters);
  EXPECT_EQ(parameters.rank, 2);
  EXPECT_EQ(parameters.time_us, 1718068145439885);
  EXPECT_TRUE(parameters.extra.is_null());
  EXPECT_EQ(write_tcap(parameters), arguments);

  const std::string text =
      R"(INFO {"local_rank": 0, "datetime": "2024-06-11 09:09:05.439885", "type": "INFO", "data": "hello"})";
  const Record message = read_tcap(text);
  EXPECT_EQ(message.type, Record::Type::Message);
  EXPECT_EQ(message.data.dump(), R"({"text":"hello"})");
  EXPECT_EQ(write_tcap(message), text);
}

TEST_F(Tcap, IgnoresInfoLinesOfOtherPrograms) {
  const LogContents contents = parse_log("INFO {not json\nINFO {\"a\": 1}\n", "x");
  EXPECT_EQ(contents.num_unknown, 2u);
}

TEST_F(Tcap, WritesElapsedTimeFirstInMetadata) {
  const std::string line =
      R"(TCAPPDLL {"timestamp": "1718068145.439885", "elapsedtime": "0.5", "datetime": "2024-06-11 09:09:05.439885", )"
      R"("type": "METADATA", "metric": "train.ips", "metadata": {"unit": "imgs/s", "format": ":.3f", "GOAL": "MAXIMIZE", "STAGE": "TRAIN"}})";
  const Record record = read_tcap(line);
  EXPECT_EQ(record.type, Record::Type::Metadata);
  EXPECT_EQ(record.name, "train.ips");
  EXPECT_TRUE(record.extra.is_null());
  EXPECT_EQ(write_tcap(record), line);
}

TEST_F(Tcap, WritesTheTextLineOfTheSpecification) {
  const std::string line =
      "TCAPPDLL 2025-05-15 14:20:10.932350 - Epoch: 0 Iteration: 1  rank : 0  train.loss : 0.7  train.ips : 16221.6 "
      "imgs/s";
  const LogContents contents = parse_log(line + "\n", "x");
  ASSERT_EQ(contents.records.size(), 2u);
  EXPECT_EQ(contents.main_dialect(), "tcap-text");
  EXPECT_EQ(contents.records[0].type, Record::Type::Metadata);
  EXPECT_EQ(contents.records[0].data.dump(), R"({"unit":"imgs/s"})");
  const Record& metrics = contents.records[1];
  EXPECT_EQ(metrics.time_us, 1747290010932350);  // 06:20:10.932350 UTC
  EXPECT_EQ(metrics.step, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(metrics.rank, 0);
  EXPECT_EQ(metrics.data.dump(), R"({"train.loss":0.7,"train.ips":16221.6})");
  EXPECT_EQ(to_log(contents.records, dialect_named("tcap-text")), line + "\n");
}

TEST_F(Tcap, ReadsHandWrittenTextLines) {
  const LogContents contents = parse_log(
      "INFO - x - TCAPPDLL 2025-10-24 07:51:02.050000 - Epoch: 3 Iteration: 12 rank: 1 train.loss : 0.25 "
      "train.total_time : 6.35\n"
      "TCAPPDLL 2025-10-24 07:51:02.050000 - Epoch: 3 Iteration: 12 Validation Iteration: 4  val.loss : 1e-05 \n"
      "TCAPPDLL 2025-10-24 07:51:02.050000 -  summary.best_metric : 0.91 \n"
      "TCAPPDLL 2025-10-24 07:51:02.050000 - PARAMETER lr : 0.1 \n",
      "x");
  ASSERT_EQ(contents.records.size(), 4u);
  EXPECT_EQ(contents.records[0].rank, 1);
  EXPECT_EQ(contents.records[0].step, (std::vector<int64_t>{3, 12}));
  EXPECT_EQ(contents.records[0].data.dump(), R"({"train.loss":0.25,"train.total_time":6.35})");
  EXPECT_EQ(contents.records[1].step, (std::vector<int64_t>{3, 12, 4}));
  EXPECT_EQ(contents.records[1].data.dump(), R"({"val.loss":1e-05})");
  EXPECT_EQ(contents.records[2].step, std::vector<int64_t>{});
  EXPECT_EQ(contents.records[2].data.dump(), R"({"summary.best_metric":0.91})");
  EXPECT_EQ(contents.records[3].type, Record::Type::Parameters);
}
