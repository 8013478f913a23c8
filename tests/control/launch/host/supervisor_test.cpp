#include "launch/host/supervisor.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include "../job_support.h"
#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "launch/host/job.h"
#include "launch/host/job_state.h"
#include "launch/host/lease_keeper.h"

using namespace assay;

namespace {

class SupervisorTest : public ::testing::Test {
 protected:
  // Runs `assay supervise` as a launcher does.
  CapturedOutput supervise_job(const LaunchRequest& job, const std::vector<std::string>& more = {}) {
    write_job(job.folder, job);
    std::vector<std::string> argv = {(program_folder() / "assay").string(), "supervise", job.folder.string(), "--node",
                                     std::to_string(job.ranks.node_rank)};
    argv.insert(argv.end(), more.begin(), more.end());
    return capture({.argv = argv}, 30);
  }
  std::optional<JobState> state(int node = 0) { return read_state(folder_.step(), node); }
  bool ends_within(double seconds) {
    return becomes_true(seconds, [&] {
      const auto now = state();
      return now && now->ended();
    });
  }
  void TearDown() override {
    if (supervisor_lives(folder_.step(), 0)) write_stop(folder_.step(), 0, 0);
    EXPECT_TRUE(becomes_true(10, [&] { return !supervisor_lives(folder_.step(), 0); })) << "a supervisor is left";
    EXPECT_FALSE(folder_.rank_lives(0)) << "a rank is left";
  }
  JobFolder folder_;
};

}  // namespace

TEST_F(SupervisorTest, LeavesItsStarterAndTellsTheEnd) {
  const LeaseKeeper keeper(folder_.step(), {0}, 60);
  const CapturedOutput said =
      supervise_job(folder_.request("echo $RANK; until test -e go; do sleep 0.05; done; exit 7", 1, 2));
  ASSERT_TRUE(said.status.ok()) << said.err;
  const auto first = state();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->phase, JobState::Phase::Running);
  EXPECT_NE(::getsid(static_cast<pid_t>(first->pid)), ::getsid(0)) << "its own session";
  write_file_atomic(folder_.run() / "go", "");
  ASSERT_TRUE(ends_within(30));
  const auto last = state();
  ASSERT_TRUE(last->result);
  EXPECT_EQ(last->result->status.code, 7);
  EXPECT_TRUE(last->result->failed_by_itself);
  EXPECT_EQ(last->result->ranks.size(), 2u);
  EXPECT_EQ(folder_.log(1), "1\n");
  EXPECT_GE(last->ended_us, last->started_us);
}

TEST_F(SupervisorTest, EndsItsRanksWhenNobodyCares) {
  LaunchRequest job = folder_.request("sleep 100 & setsid sleep 100 & wait");
  job.site.lease_s = 5;  // longer than a busy machine needs for the next two lines
  const Stopwatch watch;
  ASSERT_TRUE(supervise_job(job).status.ok());
  EXPECT_TRUE(folder_.rank_lives(0));
  ASSERT_TRUE(ends_within(60));
  EXPECT_GE(watch.seconds(), job.site.lease_s);
  EXPECT_EQ(state()->error_kind, JobState::kLeaseLapsed);
  EXPECT_FALSE(folder_.rank_lives(0));
}

TEST_F(SupervisorTest, RunsAsLongAsTheLeaseIsKept) {
  LaunchRequest job = folder_.request("sleep 8; echo done");
  job.site.lease_s = 6;  // longer than a busy machine holds the keeper up
  const LeaseKeeper keeper(folder_.step(), {0}, job.site.lease_s);
  ASSERT_TRUE(supervise_job(job).status.ok());
  ASSERT_TRUE(ends_within(60));
  EXPECT_EQ(state()->error_kind, "");
  EXPECT_TRUE(state()->result->status.ok());
}

TEST_F(SupervisorTest, EndsWithGraceAtAStop) {
  ASSERT_TRUE(supervise_job(folder_.request("trap 'echo bye; exit 3' TERM; echo up; while true; do sleep 0.05; done"))
                  .status.ok());
  ASSERT_TRUE(becomes_true(30, [&] { return folder_.log(0) == "up\n"; }));
  const Stopwatch watch;
  write_stop(folder_.step(), 0, 60);
  ASSERT_TRUE(ends_within(50));
  EXPECT_LT(watch.seconds(), 50) << "it ended before its grace did";
  EXPECT_FALSE(state()->result->failed_by_itself);
  EXPECT_TRUE(mentions(folder_.log(0), "bye"));
}

TEST_F(SupervisorTest, EndsItsRanksAtASignal) {
  ASSERT_TRUE(supervise_job(folder_.request("sleep 100")).status.ok());
  ::kill(static_cast<pid_t>(state()->pid), SIGTERM);
  ASSERT_TRUE(ends_within(60));
  EXPECT_EQ(state()->error_kind, JobState::kTerminated);
}

TEST_F(SupervisorTest, TakesItsRanksAlongWhenKilled) {
  ASSERT_TRUE(supervise_job(folder_.request("sleep 100 & setsid sleep 100 & sleep 100")).status.ok());
  ::kill(static_cast<pid_t>(state()->pid), SIGKILL);
  EXPECT_TRUE(becomes_true(30, [&] { return !folder_.rank_lives(0); }));
  EXPECT_FALSE(state()->ended());
}

TEST_F(SupervisorTest, PreparesItsHostBeforeTheRanks) {
  const LeaseKeeper keeper(folder_.step(), {0}, 60);
  LaunchRequest job = folder_.request("cat ready");
  job.site.setup = {"/bin/sh", "-c", "echo prepared >> ready"};
  for (job.attempt = 1; job.attempt <= 2; ++job.attempt) {
    ASSERT_TRUE(supervise_job(job, {"--foreground"}).status.ok());
    EXPECT_TRUE(state()->result->status.ok());
  }
  EXPECT_EQ(folder_.log(0), "prepared\nprepared\n") << "a line an attempt: it was prepared once";
}

TEST_F(SupervisorTest, StartsNoRankOnAnUnpreparedHost) {
  LaunchRequest job = folder_.request("echo up");
  job.site.setup = {"/bin/sh", "-c", "echo no driver; exit 3"};
  const CapturedOutput said = supervise_job(job);
  EXPECT_EQ(said.status.code, kExitInfrastructure);
  EXPECT_TRUE(mentions(said.err, "setup: exit code 3: no driver")) << said.err;
  ASSERT_TRUE(ends_within(30));
  EXPECT_EQ(state()->error_kind, "infrastructure");
  EXPECT_EQ(state()->error, "setup: exit code 3: no driver");
  EXPECT_EQ(folder_.log(0), "");
}

TEST_F(SupervisorTest, EndsASetupWhenNobodyCaresAndWhenItIsAskedTo) {
  LaunchRequest job = folder_.request("echo up");
  job.site.setup = {"/bin/sh", "-c", "sleep 100 & setsid sleep 100 & wait"};
  job.site.lease_s = 2;
  const Stopwatch watch;
  EXPECT_EQ(supervise_job(job, {"--foreground"}).status.code, kExitInfrastructure);
  EXPECT_GE(watch.seconds(), job.site.lease_s);
  EXPECT_EQ(state()->error_kind, JobState::kLeaseLapsed);
  EXPECT_TRUE(find_tree(setup_mark(job)).empty());
  job.attempt = 2;
  job.site.lease_s = 60;
  write_job(job.folder, job);
  Process process = Process::start({.argv = {(program_folder() / "assay").string(), "supervise", job.folder.string(),
                                             "--node", "0", "--foreground"}});
  ASSERT_TRUE(becomes_true(30, [&] { return !find_tree(setup_mark(job)).empty(); }));
  write_stop(job.folder, 0, 1);
  EXPECT_TRUE(process.wait_for(30));
  EXPECT_TRUE(find_tree(setup_mark(job)).empty());
  ASSERT_TRUE(state()->result);
  EXPECT_FALSE(state()->result->status.ok()) << "its ranks never ran";
  EXPECT_EQ(state()->error_kind, "");
  EXPECT_EQ(folder_.log(0), "");
}

TEST_F(SupervisorTest, TakesItsSetupAlongWhenKilled) {
  LaunchRequest job = folder_.request("echo up");
  job.site.setup = {"/bin/sh", "-c", "sleep 100 & setsid sleep 100 & wait"};
  write_job(job.folder, job);
  Process process = Process::start({.argv = {(program_folder() / "assay").string(), "supervise", job.folder.string(),
                                             "--node", "0", "--foreground"}});
  ASSERT_TRUE(becomes_true(30, [&] { return find_tree(setup_mark(job)).size() >= 3; }));
  ::kill(process.pid(), SIGKILL);
  EXPECT_TRUE(process.wait_for(30));
  EXPECT_TRUE(becomes_true(30, [&] { return find_tree(setup_mark(job)).empty(); }));
}

TEST_F(SupervisorTest, StartsOnlyOnce) {
  LaunchRequest job = folder_.request("sleep 100");
  const LeaseKeeper keeper(folder_.step(), {0}, 60);
  ASSERT_TRUE(supervise_job(job).status.ok());
  const int64_t pid = state()->pid;
  const CapturedOutput second = supervise_job(job);
  EXPECT_EQ(second.status.code, kExitInfrastructure);
  EXPECT_TRUE(mentions(second.err, "has a supervisor already: process " + std::to_string(pid))) << second.err;
  EXPECT_EQ(state()->pid, pid);
}

TEST_F(SupervisorTest, EndsAnEarlierAttempt) {
  LaunchRequest job = folder_.request("echo $ATTEMPT; sleep 100");
  job.command.env["ATTEMPT"] = "first";
  ASSERT_TRUE(supervise_job(job).status.ok());
  const int64_t pid = state()->pid;
  ASSERT_TRUE(becomes_true(30, [&] { return folder_.log(0) == "first\n"; }));
  job.attempt = 2;
  job.command.env["ATTEMPT"] = "second";
  ASSERT_TRUE(supervise_job(job).status.ok());
  EXPECT_NE(state()->pid, pid);
  EXPECT_EQ(state()->attempt, 2);
  EXPECT_EQ(state()->base.at("rank0.log"), 6) << "where the second attempt begins";
}

TEST_F(SupervisorTest, RejectsASecondJobOnADevice) {
  ASSERT_TRUE(supervise_job(folder_.request("sleep 100")).status.ok());
  const JobFolder other;
  LaunchRequest job = other.request("sleep 100");
  job.command.env["ASSAY_LOCKS"] = folder_.locks().string();
  job.run_id = "run-2";
  const CapturedOutput said = supervise_job(job);
  EXPECT_EQ(said.status.code, kExitInfrastructure);
  EXPECT_TRUE(mentions(said.err, "device test 0 of ")) << said.err;
  EXPECT_TRUE(mentions(said.err, "run run-1 of user ")) << said.err;
  EXPECT_FALSE(other.rank_lives(0));
  const auto refused = read_state(other.step(), 0);
  ASSERT_TRUE(refused && refused->ended());
  EXPECT_EQ(refused->error_kind, "infrastructure");
  write_stop(folder_.step(), 0, 0);
  ASSERT_TRUE(ends_within(60));
  job.command.argv = {"true"};
  EXPECT_TRUE(supervise_job(job).status.ok()) << "the device is free again";
  EXPECT_TRUE(becomes_true(5, [&] { return !supervisor_lives(other.step(), 0); }));
}

TEST_F(SupervisorTest, ReportsAtOnceWhatCannotStart) {
  LaunchRequest job = folder_.request("");
  job.command.argv = {"no-such-program"};
  const CapturedOutput said = supervise_job(job);
  EXPECT_EQ(said.status.code, kExitInfrastructure);
  EXPECT_TRUE(mentions(said.err, "no-such-program")) << said.err;
  EXPECT_TRUE(mentions(state()->error, "no-such-program"));
  fs::remove(folder_.step() / "job.node0.json");
  const CapturedOutput none = capture(
      {.argv = {(program_folder() / "assay").string(), "supervise", folder_.step().string(), "--node", "0"}}, 30);
  EXPECT_EQ(none.status.code, kExitUsage);
  EXPECT_TRUE(mentions(none.err, "job.node0.json")) << none.err;
}

TEST_F(SupervisorTest, KeepsTheLeaseAndReportsTheEndOnAFullDisk) {
  if (::geteuid() != 0 || ::mount("none", folder_.step().c_str(), "tmpfs", 0, "size=256k") != 0) {
    GTEST_SKIP() << "a small disk needs root and mount";
  }
  LaunchRequest job =
      folder_.request("head -c 1000000 /dev/zero > fill; until test -e ../../../go; do sleep 0.05; done; exit 5");
  job.command.cwd = folder_.step();
  job.site.lease_s = 6;  // longer than a busy machine holds the keeper up
  {
    const LeaseKeeper keeper(folder_.step(), {0}, job.site.lease_s);
    const auto started = supervise_job(job);
    EXPECT_TRUE(started.status.ok()) << started.err;
    EXPECT_TRUE(becomes_true(30, [&] { return fs::space(folder_.step()).available == 0; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(8000));
    EXPECT_EQ(fs::space(folder_.step()).available, 0u);
    EXPECT_TRUE(folder_.rank_lives(0)) << "it was kept";
    write_file_atomic(folder_.top() / "go", "");
    EXPECT_TRUE(ends_within(30));
  }
  const auto last = state();
  EXPECT_TRUE(last && last->result && last->result->status.code == 5);
  EXPECT_TRUE(becomes_true(5, [&] { return !supervisor_lives(folder_.step(), 0); }));
  ::umount2(folder_.step().c_str(), MNT_DETACH);
}

TEST_F(SupervisorTest, ExitsWithTheRanksCodeInTheForeground) {
  const LeaseKeeper keeper(folder_.step(), {0}, 60);
  EXPECT_EQ(supervise_job(folder_.request("exit 12"), {"--foreground"}).status.code, 12);
  EXPECT_EQ(supervise_job(folder_.request("true"), {"--foreground"}).status.code, 0);
  EXPECT_EQ(supervise_job(folder_.request("kill -9 $$"), {"--foreground"}).status.code, 137);
}
