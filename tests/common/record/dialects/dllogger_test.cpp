#include <gtest/gtest.h>

#include "record/log_file.h"
#include "record/stream.h"

using namespace assay;

namespace {

constexpr char kParameter[] =
    R"(DLLL {"timestamp": "1794771785.339754", "datetime": "2026-11-15 19:43:05.339754+00:00", "elapsedtime": "7e-06", )"
    R"("type": "LOG", "step": "PARAMETER", "data": {"HP3": 1, "HP4": 2}})";
constexpr char kMetadata[] =
    R"(DLLL {"timestamp": "1794771785.339754", "elapsedtime": "7e-06", "datetime": "2026-11-15 19:43:05.339754+00:00", )"
    R"("type": "METADATA", "metric": "speed", "metadata": {"unit": "img/s", "format": ":.3f"}})";
constexpr char kLog[] =
    R"(DLLL {"timestamp": "1794771785.339754", "datetime": "2026-11-15 19:43:05.339754+00:00", "elapsedtime": "7e-06", )"
    R"("type": "LOG", "step": [0, 5], "data": {"loss": 0.1, "speed": 10.0}})";

Record read_one(const std::string& line) {
  const LogContents contents = parse_log(line + "\n", "x");
  EXPECT_EQ(contents.records.size(), 1u);
  return contents.records.at(0);
}

std::string write_one(const Record& record, const char* dialect) {
  std::string text = to_log({record}, dialect_named(dialect));
  if (!text.empty()) text.pop_back();
  return text;
}

Record metrics() {
  Record record;
  record.type = Record::Type::Metrics;
  record.time_us = 1794771785339754;
  record.elapsed_us = 7;
  record.step = {{0, 5}};
  record.data = {{"loss", 0.1}, {"speed", 10.0}};
  return record;
}

}  // namespace

TEST(Dllogger, ReadsAndWritesTheSpecifiedLines) {
  const Record log = read_one(kLog);
  EXPECT_EQ(log, metrics());
  EXPECT_EQ(write_one(metrics(), "dllogger"), kLog);

  const Record parameter = read_one(kParameter);
  EXPECT_EQ(parameter.type, Record::Type::Parameters);
  EXPECT_EQ(parameter.data.dump(), R"({"HP3":1,"HP4":2})");
  EXPECT_TRUE(parameter.extra.is_null());
  EXPECT_EQ(write_one(parameter, "dllogger"), kParameter);

  const Record metadata = read_one(kMetadata);
  EXPECT_EQ(metadata.type, Record::Type::Metadata);
  EXPECT_EQ(metadata.name, "speed");
  EXPECT_TRUE(metadata.extra.is_null());
  EXPECT_EQ(write_one(metadata, "dllogger"), kMetadata);
}

TEST(Dllogger, TakesInNotANumberAndGivesOutValidJson) {
  const Record record =
      read_one(R"(DLLL {"timestamp": "1.0", "type": "LOG", "step": [0, 5], "data": {"loss": NaN, "g": -Infinity}})");
  EXPECT_EQ(record.data.dump(), R"({"loss":"NaN","g":"-Infinity"})");
  const std::string line = write_one(record, "dllogger");
  EXPECT_TRUE(Json::accept(line.substr(5))) << line;
  EXPECT_NE(line.find(R"("loss": "NaN", "g": "-Infinity")"), std::string::npos);
}

TEST(Dllogger, KeepsOlderLinesAndLauncherPrefixes) {
  // The first releases wrote no elapsed time; later ones wrote local time without a zone; srun puts the rank in front.
  const std::string older =
      R"(DLLL {"timestamp": "1570716921.842053", "datetime": "2019-10-10 14:15:21.842053+00:00", "type": "LOG", "step": [0, 5], "data": {"train.loss": 8.56640625}})";
  const std::string local =
      R"(3: DLLL {"timestamp": "1570716921.842053", "datetime": "2019-10-10 22:15:21.842053", "elapsedtime": "0.5", "type": "LOG", "step": [], "data": {}})";
  for (const std::string& line : {older, local}) {
    const Record record = read_one(line);
    EXPECT_EQ(record.time_us, 1570716921842053);
    EXPECT_EQ(write_one(record, "dllogger"), line);
    EXPECT_EQ(write_one(read_one(write_one(record, "mllog")), "dllogger"), line);
  }
  EXPECT_EQ(read_one(older).step, (std::vector<int64_t>{0, 5}));
}

TEST(Dllogger, ReadsStepsOfEveryKind) {
  const auto read_step = [](const std::string& step) {
    return read_one(R"(DLLL {"timestamp": "1.0", "type": "LOG", "step": )" + step + R"(, "data": {"a": 1}})");
  };
  EXPECT_EQ(read_step("[1, 2, 3]").step, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(read_step("[]").step, std::vector<int64_t>{});
  EXPECT_EQ(read_step("7").step, std::vector<int64_t>{7});
  EXPECT_EQ(read_step("\"TRAIN_START\"").name, "TRAIN_START");
  EXPECT_EQ(read_step("\"TRAIN_START\"").type, Record::Type::Event);
  EXPECT_EQ(read_step("[1, \"x\"]").type, Record::Type::Metrics);
  EXPECT_FALSE(read_step("[1, \"x\"]").step);
}

TEST(DlloggerText, WritesTheSpecifiedLines) {
  Record metadata;
  metadata.type = Record::Type::Metadata;
  metadata.name = "speed";
  metadata.data = {{"unit", "img/s"}, {"format", ":.3f"}};
  Record parameter = metrics();
  parameter.type = Record::Type::Parameters;
  parameter.data = {{"HP3", 1}, {"HP4", 2}};
  EXPECT_EQ(to_log({metadata, parameter, metrics()}, dialect_named("dllogger-text")),
            "DLL 2026-11-15 19:43:05.339754 - PARAMETER HP3 : 1  HP4 : 2 \n"
            "DLL 2026-11-15 19:43:05.339754 - (0, 5) loss : 0.1  speed : 10.000 img/s\n");
}

TEST(DlloggerText, ReadsThemBackWithUnitAndFormat) {
  const std::string text =
      "DLL 2026-11-15 19:43:05.339754 - PARAMETER HP3 : 1  HP4 : 2 \n"
      "DLL 2026-11-15 19:43:05.339754 - (0, 5) loss : 0.1  speed : 10.000 img/s\n"
      "DLL 2026-11-15 19:43:06 - (0,) loss : nan  speed : 11.500 img/s\n"
      "DLL 2026-11-15 19:43:06 - () loss : None \n"
      "DLL 2026-11-15 19:43:07 - TRAIN_END \n";
  const LogContents contents = parse_log(text, "x");
  ASSERT_EQ(contents.records.size(), 6u);
  EXPECT_EQ(contents.num_lines.at("dllogger-text"), 5u);
  EXPECT_EQ(contents.records[0].type, Record::Type::Parameters);
  EXPECT_EQ(contents.records[0].time_us, 1794771785339754);
  EXPECT_EQ(contents.records[1].type, Record::Type::Metadata);
  EXPECT_EQ(contents.records[1].name, "speed");
  EXPECT_EQ(contents.records[1].data.dump(), R"({"unit":"img/s","format":":.3f"})");
  EXPECT_EQ(contents.records[2].step, (std::vector<int64_t>{0, 5}));
  EXPECT_EQ(contents.records[2].data.dump(), R"({"loss":0.1,"speed":10.0})");
  EXPECT_EQ(contents.records[3].step, std::vector<int64_t>{0});
  EXPECT_EQ(contents.records[3].data.dump(), R"({"loss":"NaN","speed":11.5})");
  EXPECT_EQ(contents.records[4].step, std::vector<int64_t>{});
  EXPECT_EQ(contents.records[5].name, "TRAIN_END");
  EXPECT_EQ(to_log(contents.records, dialect_named("dllogger-text")), text);
}

TEST(DlloggerText, KeepsAStringWithALineBreakOnOneLine) {
  Record record = metrics();
  record.data = {{"note", "a\nDLL 2026"}};
  EXPECT_EQ(write_one(record, "dllogger-text"), "DLL 2026-11-15 19:43:05.339754 - (0, 5) note : a\\nDLL 2026 ");
}
