#include "results/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "results/database.h"
#include "run_folders.h"

using namespace assay;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

class StoreTest : public ::testing::Test {
 protected:
  fs::path file() const { return folder_.path() / kStoreFile; }
  TempFolder folder_;
};

}  // namespace

TEST_F(StoreTest, ReturnsWhatWasStored) {
  Result row = result_of("r1", "s1", 800);
  row.vendor = "acme";
  row.division = "closed";
  row.hosts = {"a", "b"};
  row.nnodes = 2;
  row.reason = "quote ' and \"";
  row.figures.converged = false;
  row.figures.metric = "accuracy";
  row.figures.warnings = {"w"};
  row.suspect = {"busy"};
  row.monitor = {{"cpu", 0.5}};
  row.step_time = {{"p50", 0.1}};
  row.environment = {{"host", {{"name", "a"}}}};
  for (const FigureSpec& spec : figure_specs()) row.figures.values.emplace(spec.key, 0.25);
  ResultStore(folder_.path()).store_run("r1", {row});
  ResultStore again(folder_.path());
  const std::vector<Result> rows = again.history({.case_name = row.case_key});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(to_json(rows[0]), to_json(row));
  EXPECT_EQ(again.environment_of("r1", "s1"), row.environment);
  EXPECT_TRUE(again.environment_of("r1", "nothing").is_null());
}

TEST_F(StoreTest, KeepsOneEntryForARunStoredTwice) {
  ResultStore store(folder_.path());
  store.store_run("r1", {result_of("r1", "s1", 1), result_of("r1", "s2", 2)});
  store.store_run("r1", {result_of("r1", "s1", 1), result_of("r1", "s2", 2)});
  EXPECT_EQ(store.num_rows(), 2u);
  store.store_run("r1", {result_of("r1", "s1", 3)});
  EXPECT_EQ(store.num_rows(), 1u) << "what is no longer in the run is gone";
}

TEST_F(StoreTest, QueriesByTheFirstPartsOfTheKey) {
  ResultStore store(folder_.path());
  std::vector<Result> rows;
  for (const char* key : {"resnet", "resnet:libtorch:cpu:1:1:3", "resnet:libtorch:cpu:1:2:3", "resnet-50"}) {
    rows.push_back(result_of("r1", std::to_string(rows.size()), 1));
    rows.back().case_key = key;
    rows.back().started_us = static_cast<int64_t>(rows.size());
  }
  rows[1].outcome = Outcome::Error;
  rows[2].suspect = {"busy"};
  rows[0].system = "another";
  store.store_run("r1", rows);
  const auto steps = [&](const HistoryQuery& query) {
    std::vector<std::string> out;
    for (const Result& row : store.history(query)) out.push_back(row.step);
    return out;
  };
  EXPECT_THAT(steps({.case_name = "resnet"}), ElementsAre("0", "1", "2")) << "oldest first, not resnet-50";
  EXPECT_THAT(steps({.case_name = "resnet:libtorch"}), ElementsAre("1", "2"));
  EXPECT_THAT(steps({.case_name = "resnet:lib"}), ElementsAre());
  EXPECT_THAT(steps({.case_name = "resnet", .limit = 2}), ElementsAre("1", "2"));
  EXPECT_THAT(steps({.case_name = "resnet", .good_only = true}), ElementsAre("0"));
  EXPECT_THAT(steps({.case_name = "resnet", .system = "another"}), ElementsAre("0"));
  EXPECT_THAT(steps({.case_name = "resnet", .before_us = 2}), ElementsAre("0"));
  EXPECT_THAT(steps({.case_name = "resnet", .except_run = "r1"}), ElementsAre());
  EXPECT_THAT(steps({.case_name = "%"}), ElementsAre());
  EXPECT_THAT(steps({.case_name = "' OR 1=1 --"}), ElementsAre());
  EXPECT_THAT(store.cases(),
              ElementsAre("resnet", "resnet-50", "resnet:libtorch:cpu:1:1:3", "resnet:libtorch:cpu:1:2:3"));
}

TEST_F(StoreTest, AcceptsManyWritersAtOnce) {
  constexpr int kWriters = 6;
  constexpr int kRuns = 10;
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      for (int r = 0; r < kRuns; ++r) {
        const std::string run = "r" + std::to_string(w) + "-" + std::to_string(r);
        ResultStore(folder_.path()).store_run(run, {result_of(run, "s1", 1), result_of(run, "s2", 2)});
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(ResultStore(folder_.path()).num_rows(), 2u * kWriters * kRuns);
}

TEST_F(StoreTest, StoresAllOrNothing) {
  ResultStore store(folder_.path());
  store.store_run("r1", {result_of("r1", "s1", 1)});
  EXPECT_THROW(store.store_run("r1", {result_of("r1", "s1", 5), result_of("r1", "s1", 6)}), DataError)
      << "two of a name";
  EXPECT_EQ(store.history({.case_name = "simplenet"}).at(0).figures.value("p_train"), 1);
}

TEST_F(StoreTest, UpgradesAnOlderFile) {
  { ResultStore(folder_.path()).store_run("r1", {result_of("r1", "s1", 1)}); }
  {
    Database database(file(), "");
    database.execute("ALTER TABLE results DROP COLUMN environment; DROP TABLE environments; PRAGMA user_version = 1");
  }
  ResultStore store(folder_.path());
  EXPECT_EQ(store.history({.case_name = "simplenet"}).size(), 1u);
  store.store_run("r2", {result_of("r2", "s1", 2)});
  EXPECT_EQ(store.num_rows(), 2u);
}

TEST_F(StoreTest, LeavesANewerFileAlone) {
  {
    ResultStore store(folder_.path());
    Database(file(), "").execute("PRAGMA user_version = 99");
  }
  try {
    ResultStore store(folder_.path());
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("newer assay"));
  }
}

TEST_F(StoreTest, NamesTheDamagedFileAndTheRemedy) {
  write_file_atomic(file(), std::string(5000, 'x'));
  try {
    ResultStore store(folder_.path());
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr(file().string()));
    EXPECT_THAT(error.what(), HasSubstr("assay history --rebuild"));
  }
}

TEST_F(StoreTest, FindsDamageInTheMiddle) {
  {
    ResultStore store(folder_.path());
    std::vector<Result> rows;
    for (int i = 0; i < 200; ++i) rows.push_back(result_of("r1", std::to_string(i), i + 1));
    store.store_run("r1", rows);
  }
  std::string bytes = read_file(file());
  ASSERT_GT(bytes.size(), 20000u);
  for (size_t i = 8192; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  write_file_atomic(file(), bytes);
  EXPECT_THROW(ResultStore(folder_.path()).history({.case_name = "simplenet"}), Error);
}

TEST_F(StoreTest, IsMadeAgainFromTheRunFolders) {
  const RunMaker maker(folder_.path());
  const fs::path run = maker.make({{.records = {result_record({{"p_train", 10}})}}, {.outcome = Outcome::Error}});
  maker.make({{.records = {result_record({{"p_train", 20}})}}});
  const fs::path broken = maker.make({{}});
  write_file_atomic(broken / "journal.jsonl", "{}\n{}\n");
  store_results(run);
  EXPECT_EQ(ResultStore(folder_.path()).num_rows(), 2u);
  ResultStore(folder_.path()).store_run("gone", {result_of("gone", "s1", 1)});
  const Rebuilt rebuilt = rebuild_results(folder_.path());
  EXPECT_EQ(rebuilt.num_runs, 2u);
  EXPECT_EQ(rebuilt.num_rows, 3u);
  EXPECT_THAT(rebuilt.problems, ElementsAre(HasSubstr(broken.filename().string())));
  EXPECT_EQ(ResultStore(folder_.path()).num_rows(), 3u) << "a run whose folder is gone is gone";
  write_file_atomic(file(),
                    "damaged beyond repair, but long enough to be looked at as if it were a file of ours ........"
                    "..................................");
  const Rebuilt again = rebuild_results(folder_.path());
  EXPECT_NE(again.set_aside, "");
  EXPECT_TRUE(fs::exists(again.set_aside));
  EXPECT_EQ(ResultStore(folder_.path()).num_rows(), 3u);
}

TEST_F(StoreTest, NamesAFolderThatCannotBeWritten) {
  write_file_atomic(folder_.path() / "file", "");
  EXPECT_THROW(ResultStore(folder_.path() / "file"), InfrastructureError);
}
