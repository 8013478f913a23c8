#include "record/log_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"

using namespace assay;

namespace {

constexpr char kMixed[] =
    "Loading data\n"
    "\n"
    "DLLL {\"timestamp\": \"1.0\", \"type\": \"LOG\", \"step\": [0, 5], \"data\": {\"loss\": 0.1}}\r\n"
    "[PerfLog] {\"event\": \"TRAIN_END\", \"metadata\": {\"time_ms\": 5, \"rank\": 0}}\n"
    "DLLL {\"timestamp\": \"2.0\", \"type\": \"LOG\", \"step\": [0, 6], \"data\": {\"loss\": 0.1}}\n"
    "{\"type\":\"message\",\"time_us\":1,\"data\":{}}\n"
    "{\"other\": \"json\"}\n";

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST(LogFile, RoutesMixedLinesToTheirDialects) {
  const LogContents contents = parse_log(kMixed, "x");
  EXPECT_EQ(contents.main_dialect(), "dllogger");
  EXPECT_EQ(contents.num_lines, (std::map<std::string, size_t>{{"assay", 1}, {"dllogger", 2}, {"perflog", 1}}));
  EXPECT_EQ(contents.num_unknown, 2u);
  ASSERT_EQ(contents.records.size(), 6u);
  EXPECT_EQ(contents.records[0].type, Record::Type::Message);
  EXPECT_EQ(contents.records[0].data.dump(), R"({"text":"Loading data"})");
  EXPECT_FALSE(contents.torn);
}

TEST(LogFile, SkipsUnknownLinesOnRequest) {
  const LogContents contents = parse_log(kMixed, "x", {.dialect = "", .unknown = ReadOptions::Unknown::Skip});
  EXPECT_EQ(contents.records.size(), 4u);
  EXPECT_EQ(contents.num_unknown, 2u);
}

TEST(LogFile, ReadsOneDialectAlone) {
  const LogContents contents = parse_log(kMixed, "x", {.dialect = "perflog", .unknown = ReadOptions::Unknown::Skip});
  EXPECT_EQ(contents.records.size(), 1u);
  EXPECT_EQ(contents.num_unknown, 5u);
  EXPECT_EQ(message_of([] { parse_log("", "x", {.dialect = "dlloger"}); }),
            "unknown log dialect 'dlloger' (did you mean 'dllogger'?); known: assay, dllogger, dllogger-text, tcap, "
            "tcap-text, perflog, mllog, fleetx, paddleclas, paddleseg, paddleocr");
}

TEST(LogFile, HandlesDamagedLines) {
  const std::string text = "a\nDLLL {\"timestamp\": \nb\n";
  EXPECT_EQ(message_of([&] { parse_log(text, "run.log"); }).substr(0, 11), "run.log:2: ");
  const LogContents contents =
      parse_log(text, "x", {.dialect = "", .unknown = {}, .damaged = ReadOptions::Damaged::Keep});
  EXPECT_EQ(contents.num_damaged, 1u);
  EXPECT_EQ(contents.num_unknown, 2u);
  EXPECT_EQ(contents.records.size(), 3u);
}

TEST(LogFile, AcceptsATornLastLine) {
  const std::string line = "DLLL {\"timestamp\": \"1.0\", \"type\": \"LOG\", \"step\": [], \"data\": {}}";
  for (size_t cut = 0; cut <= line.size(); ++cut) {
    const LogContents contents = parse_log("x\n" + line.substr(0, cut), "x");
    const bool whole = cut == line.size();
    const bool marked = cut >= 6;  // "DLLL {"
    EXPECT_EQ(contents.torn, marked && !whole) << cut;
    EXPECT_EQ(contents.records.size(), cut == 0 || (marked && !whole) ? 1u : 2u) << cut;
  }
}

TEST(LogFile, ReadOnlyDialectsRefuseToWrite) {
  EXPECT_EQ(message_of([] { to_log({}, dialect_named("fleetx")); }), "the dialect 'fleetx' can only be read");
  EXPECT_THROW(read_log("/no/such/file"), DataError);
}
