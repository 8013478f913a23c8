// Contract of every lossless dialect: what is written reads back equal, alone and through any chain of dialects; what
// was read is written back byte for byte; garbage is refused and never crashes.
#include <gtest/gtest.h>

#include "../random_records.h"
#include "base/error.h"
#include "record/dialect.h"
#include "record/json_text.h"
#include "record/log_file.h"
#include "record/members.h"
#include "record/stream.h"

using namespace assay;

namespace {

std::vector<const Dialect*> lossless_dialects() {
  std::vector<const Dialect*> found;
  for (const Dialect* dialect : dialects()) {
    if (dialect->lossless()) found.push_back(dialect);
  }
  return found;
}

std::string write(const Dialect& dialect, const Record& record) { return to_log({record}, dialect); }

Record read(const Dialect& dialect, const std::string& text) {
  const LogContents contents = parse_log(text, "x", {.dialect = std::string(dialect.name())});
  EXPECT_EQ(contents.records.size(), 1u) << text;
  return contents.records.empty() ? Record{} : contents.records[0];
}

class Lossless : public testing::TestWithParam<const Dialect*> {};

}  // namespace

TEST(LosslessDialects, AreTheFiveOfTheSpecification) {
  std::vector<std::string> names;
  for (const Dialect* dialect : lossless_dialects()) names.emplace_back(dialect->name());
  EXPECT_EQ(names, (std::vector<std::string>{"assay", "dllogger", "tcap", "perflog", "mllog"}));
}

TEST_P(Lossless, ReadsBackEveryRecordEqual) {
  RandomRecords random(11);
  for (int i = 0; i < 5000; ++i) {
    const Record record = random.record();
    const std::string line = write(*GetParam(), record);
    ASSERT_EQ(line.find('\n'), line.size() - 1);
    const Record back = read(*GetParam(), line);
    ASSERT_TRUE(same_record(record, back)) << to_record_line(record) << "\n" << line << to_record_line(back);
  }
}

TEST_P(Lossless, RecognisesOnlyItsOwnLines) {
  RandomRecords random(12);
  for (int i = 0; i < 500; ++i) {
    const std::string line = write(*GetParam(), random.record());
    const LogContents contents = parse_log(line, "x");
    ASSERT_EQ(contents.main_dialect(), GetParam()->name()) << line;
  }
}

TEST_P(Lossless, WritesPlainJson) {
  RandomRecords random(13);
  for (int i = 0; i < 2000; ++i) {
    const std::string line = write(*GetParam(), random.record());
    const std::string json = line.substr(line.find('{'));
    ASSERT_TRUE(Json::accept(json)) << line;
  }
}

// Any line that can be read is written back as it was, when its JSON had Python's form: here lines of a native program
// with members missing, added and moved.
TEST_P(Lossless, WritesChangedLinesBackAsTheyWere) {
  if (GetParam()->name() == "assay") {  // our own lines are strict instead: no member may be unknown
    EXPECT_THROW(read(*GetParam(), "{\"type\":\"event\",\"time_us\":1,\"data\":{},\"more\":1}\n"), DataError);
    return;
  }
  RandomRecords random(14);
  const std::string mark = [&] {
    Record metrics;
    metrics.type = Record::Type::Metrics;
    const std::string line = write(*GetParam(), metrics);
    return line.substr(0, line.find('{'));
  }();
  for (int i = 0; i < 3000; ++i) {
    const std::string line = write(*GetParam(), random.record());
    Json object = Json::parse(line.substr(line.find('{')));
    object.erase("assay");
    Json changed = Json::object();
    for (const auto& [key, value] : object.items()) {
      if (random.pick(8) == 0) continue;
      if (random.pick(8) == 0) changed[random.text() + "x"] = random.value(1);
      changed[key] = random.pick(8) == 0 ? random.value(1) : value;
    }
    if (mark == "TCAPPDLL " && changed.contains("type") && changed["type"] == "INFO") continue;
    std::string original = (random.pick(4) == 0 ? "0: " : "") + mark;
    append_json(original, changed, JsonStyle::Python);
    original += '\n';
    const Record record = read(*GetParam(), original);
    ASSERT_EQ(write(*GetParam(), record), original) << to_record_line(record);
    // And through another dialect's file.
    const auto others = lossless_dialects();
    const Dialect& other = *others[random.pick(others.size())];
    ASSERT_EQ(write(*GetParam(), read(other, write(other, record))), original);
  }
}

TEST_P(Lossless, ReadsOrRejectsMutatedLines) {
  RandomRecords random(15);
  for (int i = 0; i < 8000; ++i) {
    std::string line = write(*GetParam(), random.record());
    line.pop_back();
    line = mutate(line, random) + "\n";
    try {
      const LogContents contents = parse_log(line, "x");
      // What was read can be written in every dialect, and reads back.
      for (const Record& record : contents.records) {
        for (const Dialect* dialect : lossless_dialects()) {
          ASSERT_TRUE(difference(read(*dialect, write(*dialect, record)), record).empty()) << line;
        }
      }
    } catch (const DataError& error) {
      ASSERT_EQ(std::string(error.what()).substr(0, 2), "x:") << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Lossless, testing::ValuesIn(lossless_dialects()),
                         [](const auto& info) { return std::string(info.param->name()); });

TEST(LosslessDialects, ConvertLosslesslyInChainsOfThree) {
  RandomRecords random(16);
  for (const Dialect* a : lossless_dialects()) {
    for (const Dialect* b : lossless_dialects()) {
      for (const Dialect* c : lossless_dialects()) {
        for (int i = 0; i < 20; ++i) {
          const std::string first = write(*a, random.record());
          const Record in_b = read(*b, write(*b, read(*a, first)));
          const Record in_c = read(*c, write(*c, in_b));
          ASSERT_EQ(write(*a, in_c), first) << a->name() << " " << b->name() << " " << c->name();
        }
      }
    }
  }
}

TEST(LosslessDialects, CarryHostileExtraFields) {
  // `extra` comes from files: whatever it holds must neither break a line nor get lost.
  RandomRecords random(17);
  for (const Dialect* dialect : lossless_dialects()) {
    for (int i = 0; i < 2000; ++i) {
      Record record = random.record();
      Json mine = random.object(0);
      if (random.pick(2)) mine["members"] = random.object(1);
      if (random.pick(3) == 0) mine["members"]["type"] = "INFO";
      if (random.pick(3) == 0) mine["members"]["assay"] = random.value(1);
      if (random.pick(2)) mine["absent"] = Json::array({"type", "data", "metadata", random.text(), 7});
      if (random.pick(2)) mine["order"] = Json::array({"type", random.text(), nullptr});
      if (random.pick(2)) mine["prefix"] = random.text();
      record.extra = {{std::string(dialect->name()), mine}, {"other", random.value(1)}};
      const std::string line = write(*dialect, record);
      ASSERT_EQ(line.find('\n'), line.size() - 1);
      ASSERT_TRUE(difference(read(*dialect, line), record).empty()) << line;
    }
  }
}
