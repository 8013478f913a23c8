// Lines of native records are, byte for byte, what Python's loggers write: tests/peers/loggers.py does it with Python's
// own json, str and datetime.
#include <gtest/gtest.h>
#include <time.h>

#include "../random_records.h"
#include "base/process.h"
#include "base/text.h"
#include "record/dialect.h"
#include "record/log_file.h"
#include "record/members.h"
#include "record/stream.h"

using namespace assay;

namespace {

constexpr int64_t kYear2100 = 4102444800;

// Eight hours east, so that local time and UTC cannot be confused.
class LocalZone {
 public:
  LocalZone() {
    ::setenv("TZ", "CST-8", 1);
    ::tzset();
  }
  ~LocalZone() {
    ::unsetenv("TZ");
    ::tzset();
  }
};

// A value whose str() reads back as the same value, so that no dialect needs to add anything of ours.
Json native_value(RandomRecords& random) {
  switch (random.pick(6)) {
    case 0: return static_cast<int64_t>(random.pick(1'000'000)) - 1000;
    case 1: return nullptr;
    case 2: return random.pick(2) == 0;
    case 3:
      return std::vector<std::string>{"it's", "漢字 \xF0\x9F\x98\x80", "tab\there",
                                      "a \"quoted\" word"}[random.pick(4)];
    case 4: return Json::array({random.number(), "x", nullptr, Json{{"k", true}}});
    default: return random.number();
  }
}

Json native_data(RandomRecords& random) {
  Json data = Json::object();
  const std::vector<std::string> names{"train.loss", "train.ips", "loss", "speed", "lr", "é", "with blank"};
  for (size_t i = random.pick(5); i > 0; --i) data[names[random.pick(names.size())]] = native_value(random);
  return data;
}

// Records that the dialect has a form for.
Record native_record(const std::string& dialect, RandomRecords& random) {
  const bool milliseconds = dialect == "perflog" || dialect == "mllog";
  Record record;
  record.time_us = static_cast<int64_t>(random.pick(static_cast<size_t>(kYear2100) * 1'000'000));
  if (random.pick(10) == 0) record.time_us -= record.time_us % 1'000'000;  // str(datetime) has no fraction then
  if (milliseconds) record.time_us -= record.time_us % 1000;
  if (!milliseconds) record.elapsed_us = static_cast<int64_t>(random.pick(random.pick(2) ? 100 : 100'000'000'000));
  record.data = native_data(random);
  if (dialect != "dllogger" && dialect != "dllogger-text" && dialect != "mllog") {
    record.rank = static_cast<int>(random.pick(4));
  }
  if (milliseconds && random.pick(2)) {
    record.file = "/a/b.py";
    record.line = 12;
  }
  const auto indices = [&](size_t count) {
    record.step.emplace();
    for (size_t i = 0; i < count; ++i) record.step->push_back(static_cast<int64_t>(random.pick(100)));
  };
  switch (random.pick(milliseconds ? 3 : 5)) {
    case 0:
      record.type = Record::Type::Event;
      record.name = std::vector<std::string>{"TRAIN_START", "EPOCH_END", "EVALUATE", "run_stop"}[random.pick(4)];
      break;
    case 1:
      record.type = Record::Type::Metrics;
      indices(random.pick(4));
      if (milliseconds && record.data.empty()) record.data["loss"] = 0.5;
      break;
    case 2:
      if (dialect == "dllogger" || dialect == "dllogger-text" || dialect == "mllog")
        return native_record(dialect, random);
      record.type = Record::Type::Message;
      record.data = {{"text", "a message: 漢字"}};
      if (dialect == "perflog") record.name = "SUBMIT_INFO";
      break;
    case 3:
      if (dialect == "tcap-text") return native_record(dialect, random);
      record.type = Record::Type::Parameters;
      if (dialect == "tcap") record.elapsed_us = 0;
      break;
    default:
      record.type = Record::Type::Metadata;
      record.name = std::vector<std::string>{"train.loss", "train.ips", "é"}[random.pick(3)];
      record.data = {{"unit", random.pick(2) ? "img/s" : ""}, {"GOAL", "MAXIMIZE"}, {"STAGE", "TRAIN"}};
      if (dialect == "dllogger") record.data["format"] = ":.3f";
      record.rank = 0;
      break;
  }
  if (dialect == "tcap" && record.type == Record::Type::Message) record.elapsed_us = 0;
  return record;
}

class Peer : public testing::TestWithParam<std::string> {};

}  // namespace

TEST_P(Peer, WritesTheSameBytes) {
  const LocalZone zone;
  RandomRecords random(31);
  std::vector<Record> records;
  while (records.size() < 2000) records.push_back(native_record(GetParam(), random));
  TempFolder folder;
  write_file_atomic(folder.path() / "records.jsonl", to_log(records, dialect_named("assay")));
  const CapturedOutput peer = capture({.argv = {"/usr/bin/python3", ASSAY_SOURCE_DIR "/tests/peers/loggers.py",
                                                GetParam(), (folder.path() / "records.jsonl").string()},
                                       .env = {{"PYTHONIOENCODING", "utf-8"}},
                                       .cwd = {},
                                       .output_file = {},
                                       .tree_mark = {}},
                                      60);
  ASSERT_TRUE(peer.status.ok()) << peer.err;
  const std::vector<std::string> theirs = split(peer.out, '\n');
  const std::vector<std::string> ours = split(to_log(records, dialect_named(GetParam())), '\n');
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) ASSERT_EQ(ours[i], theirs[i]);

  // And the lines of Python are read as these records, with nothing left over.
  if (!dialect_named(GetParam()).lossless()) return;
  const LogContents read = parse_log(peer.out, "peer");
  ASSERT_EQ(read.records.size(), records.size());
  ASSERT_EQ(read.num_lines.at(GetParam()), records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    ASSERT_TRUE(difference(read.records[i], records[i]).empty()) << theirs[i] << "\n"
                                                                 << to_record_line(read.records[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Peer,
                         testing::Values("dllogger", "dllogger-text", "tcap", "tcap-text", "perflog", "mllog"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });
