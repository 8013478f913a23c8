#include <gtest/gtest.h>

#include "record/log_file.h"
#include "record/stream.h"

using namespace assay;

namespace {

Record read_single(const std::string& line) {
  const LogContents contents = parse_log(line + "\n", "x");
  EXPECT_EQ(contents.records.size(), 1u);
  EXPECT_EQ(contents.num_unknown, 0u);
  return contents.records.at(0);
}

std::string write_single(const Record& record, const char* dialect) {
  std::string text = to_log({record}, dialect_named(dialect));
  text.pop_back();
  return text;
}

Record event(const char* name, Json data) {
  Record record;
  record.type = Record::Type::Event;
  record.time_us = 1794771785339000;
  record.name = name;
  record.file = "run.py";
  record.line = 7;
  record.data = std::move(data);
  return record;
}

}  // namespace

TEST(Perflog, ReadsAndWritesTheSpecifiedLine) {
  const std::string line =
      R"([PerfLog] {"event": "STEP_END", "value": {"loss": 0.5}, "metadata": {"file": "run.py", "lineno": 7, "time_ms": 1794771785339, "rank": 0}})";
  EXPECT_EQ(read_single(line), event("STEP_END", {{"loss", 0.5}}));
  EXPECT_EQ(write_single(event("STEP_END", {{"loss", 0.5}}), "perflog"), line);
}

TEST(Perflog, KeepsMessagesAndAddedFields) {
  const std::string message =
      R"([PerfLog] {"event": "INIT_START", "other": "hello", "metadata": {"file": "run.py", "lineno": 7, "time_ms": 1, "rank": 3}})";
  Record record = read_single(message);
  EXPECT_EQ(record.type, Record::Type::Message);
  EXPECT_EQ(record.name, "INIT_START");
  EXPECT_EQ(record.rank, 3);
  EXPECT_EQ(record.data.dump(), R"({"text":"hello"})");
  EXPECT_EQ(write_single(record, "perflog"), message);

  const std::string step =
      R"([PerfLog] {"event": "STEP_END", "step": 12, "epoch": 1, "loss": NaN, "metadata": {"file": "run.py", "lineno": 7, "time_ms": 1, "rank": 0}})";
  record = read_single(step);
  EXPECT_EQ(record.type, Record::Type::Event);
  EXPECT_EQ(record.data.dump(), R"({"step":12,"epoch":1,"loss":"NaN"})");
  std::string expected = step;
  expected.replace(expected.find("NaN"), 3, "\"NaN\"");  // valid JSON, still visible
  EXPECT_EQ(write_single(record, "perflog"), expected);
}

TEST(Perflog, KeepsPrecisionBeyondMilliseconds) {
  Record record = event("TRAIN_END", Json::object());
  record.time_us += 754;
  record.elapsed_us = 9;
  EXPECT_EQ(
      write_single(record, "perflog"),
      R"([PerfLog] {"event": "TRAIN_END", "metadata": {"file": "run.py", "lineno": 7, "time_ms": 1794771785339, "rank": 0}, "assay": {"time_us": 1794771785339754, "elapsed_us": 9}})");
}

TEST(Mllog, ReadsAndWritesTheSpecifiedLine) {
  const std::string line =
      R"(:::MLLOG {"namespace": "", "time_ms": 1794771785339, "event_type": "POINT_IN_TIME", "key": "eval_accuracy", "value": 0.75, "metadata": {"file": "run.py", "lineno": 7, "epoch_num": 4}})";
  EXPECT_EQ(read_single(line), event("eval_accuracy", {{"value", 0.75}, {"epoch_num", 4}}));
  EXPECT_EQ(write_single(event("eval_accuracy", {{"value", 0.75}, {"epoch_num", 4}}), "mllog"), line);
}

TEST(Mllog, KeepsIntervalsNamespacesAndForeignOrder) {
  const std::string start =
      R"(:::MLLOG {"namespace": "", "time_ms": 5, "event_type": "INTERVAL_START", "key": "run_start", "value": null, "metadata": {"file": "a", "lineno": 1}})";
  EXPECT_TRUE(read_single(start).extra.is_null());
  EXPECT_EQ(write_single(read_single(start), "mllog"), start);
  const std::string foreign =
      R"(0: :::MLLOG {"key": "block", "value": [1, {"a": 2}], "time_ms": 5.5, "namespace": "worker1", "event_type": "INTERVAL_START", "metadata": {"lineno": 2, "file": "a", "value": 3}})";
  const Record record = read_single(foreign);
  EXPECT_EQ(record.name, "block");
  EXPECT_EQ(write_single(record, "mllog"), foreign);
  EXPECT_EQ(write_single(read_single(write_single(record, "tcap")), "mllog"), foreign);
}

TEST(Mllog, WritesMetricsAsTrackedStats) {
  Record record;
  record.type = Record::Type::Metrics;
  record.time_us = 5000;
  record.rank = 2;
  record.step = {{1, 2}};
  record.data = {{"train.loss", 0.5}};
  const std::string line =
      R"(:::MLLOG {"namespace": "", "time_ms": 5, "event_type": "POINT_IN_TIME", "key": "tracked_stats", "value": {"train.loss": 0.5}, "metadata": {"file": "", "lineno": 0, "step": [1, 2], "rank": 2}})";
  EXPECT_EQ(write_single(record, "mllog"), line);
  EXPECT_EQ(read_single(line), record);
}
