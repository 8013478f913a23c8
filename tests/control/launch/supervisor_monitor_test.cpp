// What the supervisor does beside its ranks: it watches the host, and takes two signals for one.
#include <gtest/gtest.h>
#include <signal.h>

#include "base/journal.h"
#include "base/process.h"
#include "job_support.h"
#include "launch/host/job.h"
#include "launch/host/job_state.h"
#include "launch/host/lease_keeper.h"
#include "monitor/sample.h"

using namespace assay;

namespace {

Process start_supervisor(const LaunchRequest& job) {
  write_job(job.folder, job);
  return Process::start(
      {.argv = {(program_folder() / "assay").string(), "supervise", job.folder.string(), "--node", "0", "--foreground"},
       .output_file = job.folder / "supervisor.log"});
}

}  // namespace

TEST(SupervisorMonitor, WatchesTheHostWhileRanksRun) {
  const JobFolder folder;
  const LeaseKeeper keeper(folder.step(), {0}, 10);
  LaunchRequest job = folder.request("i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done", 1, 2);
  job.site.monitor_interval_s = 0.1;
  job.site.monitor_command = {"/bin/echo", R"({"index":0,"power_w":61.5})"};
  Process supervisor = start_supervisor(job);
  ASSERT_TRUE(supervisor.wait_for(60).has_value());
  const auto lines = read_journal(folder.step() / job_file_name(JobFile::Monitor, 0)).lines;
  ASSERT_FALSE(lines.empty());
  double most_own = 0;
  bool devices = false;
  for (const Json& line : lines) {
    const auto sample = sample_of(line);
    ASSERT_TRUE(sample.has_value()) << line;
    most_own = std::max(most_own, sample->cpu_own.value());
    devices = devices || sample->devices.is_array();
  }
  EXPECT_GT(most_own, 0.05) << "the ranks carry the mark of the job";
  EXPECT_TRUE(devices) << "the command of the job was asked";
}

TEST(SupervisorMonitor, WritesNoFileWithoutAnInterval) {
  const JobFolder folder;
  const LeaseKeeper keeper(folder.step(), {0}, 10);
  Process supervisor = start_supervisor(folder.request("true"));
  ASSERT_TRUE(supervisor.wait_for(60).has_value());
  EXPECT_FALSE(fs::exists(folder.step() / job_file_name(JobFile::Monitor, 0)));
}

TEST(SupervisorMonitor, TreatsTwoSignalsAsOneAndWritesTheEnd) {
  const JobFolder folder;
  const LeaseKeeper keeper(folder.step(), {0}, 10);
  Process supervisor = start_supervisor(folder.request("trap 'sleep 0.5; exit 3' TERM; echo begin; sleep 60 & wait"));
  ASSERT_TRUE(becomes_true(30, [&] { return folder.log(0) == "begin\n"; }));
  for (int i = 0; i < 3; ++i) {
    ::kill(supervisor.pid(), SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ASSERT_TRUE(supervisor.wait_for(30).has_value());
  const auto state = read_state(folder.step(), 0);
  ASSERT_TRUE(state && state->ended());
  EXPECT_EQ(state->error_kind, JobState::kTerminated);
  EXPECT_FALSE(folder.rank_lives(0));
}
