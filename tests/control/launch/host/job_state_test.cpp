#include "launch/host/job_state.h"

#include <gtest/gtest.h>
#include <utime.h>

#include <fstream>

#include "../job_support.h"
#include "base/error.h"
#include "launch/host/job.h"
#include "launch/host/lease_keeper.h"

using namespace assay;

namespace {

JobState ended_state() {
  JobState state{.phase = JobState::Phase::Ended,
                 .run_id = "run-1",
                 .attempt = 2,
                 .node = 1,
                 .host = "node2",
                 .pid = 77,
                 .started_us = 1'700'000'000'000'000,
                 .ended_us = 1'700'000'001'000'000,
                 .base = {{"rank2.log", 10}},
                 .environment = {{"host", {{"kernel", "6.1"}}}},
                 .error_kind = JobState::kLeaseLapsed,
                 .error = "nobody cared"};
  LaunchResult result;
  result.ranks.push_back({.code = 3, .signal = {}, .seconds = 1.5, .max_rss_bytes = 1000});
  result.ranks.push_back({.code = {}, .signal = 9, .seconds = 2, .max_rss_bytes = 2000});
  result.status = result.ranks[1];
  result.deciding_rank = 3;
  result.failed_by_itself = true;
  result.max_rss_bytes = 3000;
  state.result = result;
  return state;
}

}  // namespace

TEST(JobState, ComesBackAsItWasWritten) {
  const JobFolder folder;
  EXPECT_FALSE(read_state(folder.step(), 1));
  const JobState state = ended_state();
  write_state(folder.step(), state);
  const auto back = read_state(folder.step(), 1);
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json(*back), to_json(state));
  EXPECT_EQ(back->result->ranks[0].code, 3);
  EXPECT_EQ(back->result->ranks[1].signal, 9);
  EXPECT_EQ(back->ended_us, state.ended_us);
}

TEST(JobState, RetriesWhileStateIsBeingWrittenAndRejectsOldCorruptState) {
  const JobFolder folder;
  const fs::path path = folder.step() / "state.node1.json";
  std::ofstream(path) << "{\"state\": \"run";
  EXPECT_FALSE(read_state(folder.step(), 1));
  const utimbuf old{1000, 1000};
  ASSERT_EQ(::utime(path.c_str(), &old), 0);
  EXPECT_TRUE(mentions(message_of<DataError>([&] { read_state(folder.step(), 1); }), path.string()));
}

TEST(JobState, NamesTheFieldInErrors) {
  for (const auto& [key, value] : std::vector<std::pair<const char*, Json>>{{"state", "dancing"},
                                                                            {"pid", "x"},
                                                                            {"started", "yesterday"},
                                                                            {"base", {{"rank0.log", -1}}},
                                                                            {"result", {{"status", 1}}},
                                                                            {"error", {{"kind", 1}}},
                                                                            {"more", 1}}) {
    Json bad = to_json(ended_state());
    bad[key] = value;
    EXPECT_TRUE(mentions(message_of<DataError>([&] { job_state_of(bad, "F"); }), std::string("F: ") + key)) << key;
  }
}

TEST(JobState, IgnoresTheStateOfAnotherAttempt) {
  const JobFolder folder;
  write_state(folder.step(), ended_state());
  LaunchRequest job = folder.request("true", 2);
  job.ranks.node_rank = 1;
  job.attempt = 2;
  EXPECT_TRUE(state_of_attempt(job));
  job.attempt = 3;
  EXPECT_FALSE(state_of_attempt(job));
  job.attempt = 2;
  job.run_id = "run-2";
  EXPECT_FALSE(state_of_attempt(job));
}

TEST(JobState, ChangesTheLeaseWhileItIsKept) {
  const JobFolder folder;
  EXPECT_EQ(read_lease(folder.step(), 0), "");
  std::string last;
  {
    const LeaseKeeper keeper(folder.step(), {0, 1}, 0.2);
    last = read_lease(folder.step(), 1);
    EXPECT_NE(last, "");
    EXPECT_TRUE(becomes_true(5, [&] { return read_lease(folder.step(), 1) != last; }));
  }
  last = read_lease(folder.step(), 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(read_lease(folder.step(), 1), last);
}

TEST(JobState, ReportsTheGraceOfAStop) {
  const JobFolder folder;
  EXPECT_FALSE(read_stop(folder.step(), 0));
  write_stop(folder.step(), 0, 1.5);
  EXPECT_EQ(read_stop(folder.step(), 0), 1.5);
  for (const char* nonsense : {"", "soon", "-3", "1e300", "nan"}) {
    std::ofstream(folder.step() / "stop.node0") << nonsense;
    EXPECT_EQ(read_stop(folder.step(), 0), 3) << nonsense;
  }
}

TEST(JobState, LetsOneSupervisorHoldTheLock) {
  const JobFolder folder;
  EXPECT_FALSE(supervisor_lives(folder.step(), 0));
  {
    const FileDescriptor lock = take_supervisor_lock(folder.step(), 0);
    EXPECT_TRUE(lock);
    EXPECT_TRUE(supervisor_lives(folder.step(), 0));
    EXPECT_FALSE(supervisor_lives(folder.step(), 1));
    EXPECT_FALSE(take_supervisor_lock(folder.step(), 0));
  }
  EXPECT_FALSE(supervisor_lives(folder.step(), 0));
}
