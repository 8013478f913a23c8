#include "record/stream.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#include "base/error.h"
#include "random_records.h"

using namespace assay;

namespace {

Record metrics(int64_t time_us, double loss) {
  Record record;
  record.type = Record::Type::Metrics;
  record.time_us = time_us;
  record.elapsed_us = 7;
  record.step = {{0, 5}};
  record.data = {{"train.loss", loss}};
  return record;
}

std::string fault_message(const std::function<void()>& action) {
  try {
    action();
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

void append_text(const fs::path& path, std::string_view text) { std::ofstream(path, std::ios::app) << text; }

}  // namespace

TEST(RecordStream, WritesTheDocumentedLine) {
  EXPECT_EQ(to_record_line(metrics(1794771785339754, 0.1)),
            R"({"type":"metrics","time_us":1794771785339754,"elapsed_us":7,"rank":0,"step":[0,5],)"
            R"("data":{"train.loss":0.1}})");
  Record full = metrics(1, 2);
  full.type = Record::Type::Event;
  full.name = "TRAIN_START";
  full.rank = 3;
  full.verbosity = Record::Verbosity::Verbose;
  full.file = "a.py";
  full.line = 12;
  EXPECT_EQ(to_record_line(full),
            R"({"type":"event","time_us":1,"elapsed_us":7,"rank":3,"name":"TRAIN_START","step":[0,5],)"
            R"("verbosity":1,"file":"a.py","line":12,"data":{"train.loss":2.0}})");
}

TEST(RecordStream, KeepsNonFiniteNumbersValidAndVisible) {
  Record record = metrics(1, 0);
  record.data = {{"a", std::nan("")}, {"b", HUGE_VAL}, {"c", -HUGE_VAL}};
  const std::string line = to_record_line(record);
  const Json parsed = Json::parse(line);  // plain JSON, no extension
  EXPECT_EQ(parsed["data"].dump(), R"({"a":"NaN","b":"Infinity","c":"-Infinity"})");
  EXPECT_TRUE(std::isnan(number_of(record_of(line, "x").data["a"])));
}

TEST(RecordStream, ReadsBackEveryRecordEqual) {
  RandomRecords random(1);
  for (int i = 0; i < 20000; ++i) {
    const Record record = random.record();
    const std::string line = to_record_line(record);
    ASSERT_EQ(line.find('\n'), std::string::npos);
    const Record back = record_of(line, "x");
    ASSERT_TRUE(same_record(record, back)) << line << "\n" << to_record_line(back);
  }
}

TEST(RecordStream, NamesFileLineAndKeyInErrors) {
  const auto read = [](std::string_view line) { return fault_message([&] { record_of(line, "f.jsonl:3"); }); };
  EXPECT_EQ(read(R"({"type":"event","time_us":1})"), "f.jsonl:3: a record needs the key 'data'");
  EXPECT_EQ(read(R"({"type":"evnt","time_us":1,"data":{}})"),
            "f.jsonl:3: 'type' must be event, parameters, metadata, metrics, environment, result or message");
  EXPECT_EQ(read(R"({"type":"event","time_us":1.5,"data":{}})"), "f.jsonl:3: 'time_us' must be an integer");
  EXPECT_EQ(read(R"({"type":"event","time_us":18446744073709551615,"data":{}})"),
            "f.jsonl:3: 'time_us' must be an integer");
  EXPECT_EQ(read(R"({"type":"event","time_us":1,"rank":4294967296,"data":{}})"),
            "f.jsonl:3: 'rank' must be a 32-bit integer");
  EXPECT_EQ(read(R"({"type":"event","time_us":1,"step":[1.5],"data":{}})"), "f.jsonl:3: 'step' must be an integer");
  EXPECT_EQ(read(R"({"type":"event","time_us":1,"verbosity":2,"data":{}})"),
            "f.jsonl:3: 'verbosity' must be -1, 0 or 1");
  EXPECT_EQ(read(R"({"type":"event","time_us":1,"stepp":[1],"data":{}})"),
            "f.jsonl:3: unknown key 'stepp' (did you mean 'step'?)");
  EXPECT_EQ(read("[1]"), "f.jsonl:3: a record must be a JSON object");
  EXPECT_NE(read(R"({"type")").find("f.jsonl:3: line 1, column"), std::string::npos);
}

TEST(RecordStream, SurvivesMutatedLines) {
  RandomRecords random(2);
  size_t num_refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string line = mutate(to_record_line(random.record()), random);
    try {
      record_of(line, "x");
    } catch (const DataError&) {
      ++num_refused;
    }
  }
  EXPECT_GT(num_refused, 10000u);
}

TEST(RecordStream, FillsInTimeElapsedAndRank) {
  TempFolder folder;
  const fs::path path = folder.path() / "r.jsonl";
  const int64_t before_us = now_us();
  {
    RecordWriter writer(path, 3);
    ::usleep(2000);
    writer.write(Record{});
    Record fixed = metrics(42, 1);
    writer.write(fixed);
    writer.write_metrics({1, 2}, {{"train.loss", 0.5}, {"train.lr", std::nan("")}});
  }
  const std::vector<Record> records = read_records(path);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_GE(records[0].time_us, before_us);
  EXPECT_LE(records[0].time_us, now_us());
  EXPECT_GE(records[0].elapsed_us, 2000);
  EXPECT_EQ(records[0].rank, 3);
  EXPECT_EQ(records[1].time_us, 42);
  EXPECT_EQ(records[1].elapsed_us, 7);
  EXPECT_EQ(records[2].type, Record::Type::Metrics);
  EXPECT_EQ(records[2].step, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(records[2].data.dump(), R"({"train.loss":0.5,"train.lr":"NaN"})");
  EXPECT_GE(records[2].time_us, before_us);
}

TEST(RecordStream, HoldsBackUntilFlush) {
  TempFolder folder;
  const fs::path path = folder.path() / "r.jsonl";
  RecordWriter writer(path, 0, 3);
  writer.write(metrics(1, 1));
  writer.write(metrics(2, 1));
  EXPECT_EQ(read_records(path).size(), 0u);
  writer.write(metrics(3, 1));
  EXPECT_EQ(read_records(path).size(), 3u);
  writer.write(metrics(4, 1));
  writer.flush();
  EXPECT_EQ(read_records(path).size(), 4u);
}

TEST(RecordStream, CutAtEveryByteLosesOnlyTheTornLine) {
  const std::string first = to_record_line(metrics(1, 0.25)) + "\n";
  const std::string second = to_record_line(metrics(2, 0.5)) + "\n";
  TempFolder folder;
  for (size_t cut = 0; cut <= second.size(); ++cut) {
    const fs::path path = folder.path() / fmt::format("{}.jsonl", cut);
    append_text(path, first + second.substr(0, cut));
    const size_t expected = cut == second.size() ? 2 : 1;
    ASSERT_EQ(read_records(path).size(), expected) << cut;
    RecordWriter(path).write(metrics(3, 1));
    const std::vector<Record> after = read_records(path);
    ASSERT_EQ(after.size(), expected + 1) << cut;
    ASSERT_EQ(after.back().time_us, 3);
  }
}

TEST(RecordStream, RejectsDamageBeforeTheLastLine) {
  TempFolder folder;
  const fs::path path = folder.path() / "r.jsonl";
  append_text(path, to_record_line(metrics(1, 1)) + "\n{\"type\":\n" + to_record_line(metrics(2, 1)) + "\n");
  EXPECT_NE(fault_message([&] { read_records(path); }).find("r.jsonl:2: "), std::string::npos);
  EXPECT_TRUE(read_records(folder.path() / "missing").empty());
  EXPECT_THROW(RecordWriter(folder.path() / "no" / "folder"), InfrastructureError);
}

TEST(RecordStream, ReportsAFullDisk) {
  RecordWriter writer("/dev/full", 0, 2);
  writer.write(metrics(1, 1));
  EXPECT_THROW(writer.write(metrics(2, 1)), InfrastructureError);
}

TEST(RecordStream, MergesByTimeAndKeepsEachFilesOrder) {
  const auto rank = [](int rank, std::vector<int64_t> times) {
    std::vector<Record> records;
    for (int64_t time : times) {
      records.push_back(metrics(time, 0));
      records.back().rank = rank;
    }
    return records;
  };
  // Rank 0's clock goes back at its third record; rank 1 has a line without a time.
  std::string order;
  for (const Record& record : merge_by_time({rank(0, {1, 5, 4, 7}), rank(1, {2, 0, 5, 6})})) {
    order += fmt::format("{}:{} ", record.rank, record.time_us);
  }
  EXPECT_EQ(order, "0:1 1:2 1:0 0:5 0:4 1:5 1:6 0:7 ");
  EXPECT_TRUE(merge_by_time({}).empty());
}

TEST(RecordStream, FollowsEachCompleteLineOnce) {
  TempFolder folder;
  const fs::path path = folder.path() / "r.jsonl";
  RecordFollower follower(path);
  EXPECT_TRUE(follower.next().empty());  // no file yet
  const std::string line = to_record_line(metrics(1, 1)) + "\n";
  append_text(path, line + line.substr(0, 10));
  EXPECT_EQ(follower.next().size(), 1u);
  EXPECT_TRUE(follower.next().empty());
  append_text(path, line.substr(10) + line);
  EXPECT_EQ(follower.next().size(), 2u);
  append_text(path, "damage\n");
  EXPECT_NE(fault_message([&] { follower.next(); }).find("r.jsonl:4: "), std::string::npos);
  fs::resize_file(path, line.size());  // replaced by a shorter one
  EXPECT_EQ(follower.next().size(), 1u);
}

// A child writes as fast as it can and counts, in shared memory, the records whose write() returned; it is killed at a
// random moment. Every counted record must be in the file; one more may be, when the kill fell between the two.
TEST(RecordStream, KillLosesAtMostTheLineBeingWritten) {
  TempFolder folder;
  const fs::path path = folder.path() / "r.jsonl";
  auto* count = static_cast<std::atomic<int64_t>*>(
      ::mmap(nullptr, sizeof(std::atomic<int64_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(count, MAP_FAILED);
  RandomRecords random(3);
  int64_t uncounted = 0;
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      RecordWriter writer(path);
      while (true) {
        writer.write(metrics(*count + 1, 0.5));
        ++*count;
      }
    }
    ::usleep(static_cast<useconds_t>(1000 + random.pick(8000)));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const auto found = static_cast<int64_t>(read_records(path).size());
    ASSERT_GE(found, *count + uncounted);
    ASSERT_LE(found, *count + uncounted + 1);
    uncounted = found - *count;
  }
  EXPECT_GT(*count, 100);
  ::munmap(count, sizeof *count);
}
