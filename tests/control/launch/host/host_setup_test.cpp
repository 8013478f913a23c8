#include "launch/host/host_setup.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../job_support.h"
#include "base/error.h"
#include "base/text.h"
#include "launch/host/job.h"

using namespace assay;

namespace {

class HostSetupTest : public ::testing::Test {
 protected:
  LaunchRequest job(const std::string& script, int nnodes = 1, int node = 0) const {
    LaunchRequest out = folder_.request("true", nnodes, 2);
    out.site.setup = {"/bin/sh", "-c", script};
    out.ranks.node_rank = node;
    return out;
  }
  // How often a setup that writes a line into it has run.
  size_t num_runs() const {
    const fs::path path = folder_.run() / "count";
    return fs::exists(path) ? split(trim(read_file(path)), '\n').size() : 0;
  }
  bool is_marked(const std::string& host) const { return fs::exists(folder_.run() / "setup" / (host + ".done")); }
  std::string log() const { return read_file(folder_.step() / "setup.node0.log"); }
  JobFolder folder_;
};

constexpr char kCount[] = "echo x >> count";

}  // namespace

TEST_F(HostSetupTest, RunsOnceForAllJobsOfTheRunOnAHost) {
  for (int i = 0; i < 3; ++i) {
    HostSetup setup(job(kCount));
    const LaunchResult result = end_of(setup);
    EXPECT_TRUE(result.status.ok());
    EXPECT_EQ(result.infrastructure, "");
  }
  EXPECT_EQ(num_runs(), 1u);
  EXPECT_TRUE(is_marked("node1"));
  LaunchRequest elsewhere = job(kCount);
  elsewhere.placement.nodes[0].host.name = "node7";
  HostSetup setup(elsewhere);
  EXPECT_TRUE(end_of(setup).status.ok());
  EXPECT_EQ(num_runs(), 2u) << "another host";
}

TEST_F(HostSetupTest, HasItsVariablesAndTheRunFolder) {
  LaunchRequest request = job("echo \"$WHO $PWD\"");
  request.site.setup_env = {{"WHO", "a vendor"}};
  HostSetup setup(request);
  EXPECT_TRUE(end_of(setup).status.ok());
  EXPECT_EQ(log(), "a vendor " + fs::canonical(folder_.run()).string() + "\n");
}

TEST_F(HostSetupTest, ReportsTheLastLinesOfAFailure) {
  const LaunchRequest request = job("echo x >> count; echo old; echo no driver; test -e good");
  for (int i = 0; i < 2; ++i) {
    HostSetup setup(request);
    const LaunchResult result = end_of(setup);
    EXPECT_EQ(result.infrastructure, "setup: exit code 1: old; no driver") << "of this attempt only";
    EXPECT_EQ(result.ranks.size(), 2u);
    EXPECT_FALSE(result.failed_by_itself);
    EXPECT_FALSE(is_marked("node1"));
  }
  write_file_atomic(folder_.run() / "good", "");
  HostSetup setup(request);
  EXPECT_EQ(end_of(setup).infrastructure, "");
  EXPECT_TRUE(is_marked("node1"));
  EXPECT_EQ(num_runs(), 3u);
}

TEST_F(HostSetupTest, LeavesNothingRunningAfterAFailure) {
  const LaunchRequest request = job("setsid sleep 100 & exit 3");
  HostSetup setup(request);
  EXPECT_EQ(end_of(setup).infrastructure, "setup: exit code 3");
  EXPECT_TRUE(find_tree(setup_mark(request)).empty());
}

TEST_F(HostSetupTest, NamesAMissingProgram) {
  LaunchRequest request = job("true");
  request.site.setup = {"code/vendor-x/setup"};
  HostSetup setup(request);
  EXPECT_TRUE(
      mentions(message_of<InfrastructureError>([&] { setup.wait_for(10, -1); }), "cannot start code/vendor-x/setup"));
}

TEST_F(HostSetupTest, WaitsForTheJobThatRunsIt) {
  const LaunchRequest request = job("echo x >> count; until test -e go; do sleep 0.02; done");
  HostSetup first(request), second(request);
  EXPECT_FALSE(first.wait_for(0.1, -1));
  ASSERT_TRUE(becomes_true(30, [&] { return num_runs() == 1; }));
  EXPECT_FALSE(second.wait_for(1.5, -1));
  EXPECT_EQ(num_runs(), 1u);
  EXPECT_TRUE(mentions(log(), "waiting for the setup of another job")) << "it is not silent meanwhile";
  write_file_atomic(folder_.run() / "go", "");
  EXPECT_TRUE(end_of(first).status.ok());
  EXPECT_TRUE(end_of(second).status.ok());
  EXPECT_EQ(num_runs(), 1u);
}

TEST_F(HostSetupTest, RetriesAfterAnothersFailure) {
  HostSetup first(job("echo x >> count; until test -e go; do sleep 0.02; done; exit 1"));
  HostSetup second(job(kCount));
  EXPECT_FALSE(first.wait_for(0.1, -1));
  EXPECT_FALSE(second.wait_for(0.1, -1));
  write_file_atomic(folder_.run() / "go", "");
  EXPECT_NE(end_of(first).infrastructure, "");
  EXPECT_TRUE(end_of(second).status.ok());
  EXPECT_EQ(num_runs(), 2u);
}

TEST_F(HostSetupTest, EndsAtAStopWithoutAMark) {
  const LaunchRequest request = job("echo x >> count; sleep 100 & setsid sleep 100 & wait");
  HostSetup setup(request);
  EXPECT_FALSE(setup.wait_for(0.1, -1));
  ASSERT_TRUE(becomes_true(30, [&] { return num_runs() == 1; }));
  const LaunchResult result = setup.stop(0);
  EXPECT_FALSE(result.status.ok()) << "its ranks never ran";
  EXPECT_FALSE(result.failed_by_itself);
  EXPECT_TRUE(find_tree(setup_mark(request)).empty());
  EXPECT_FALSE(is_marked("node1"));
  HostSetup next(job("true"));
  EXPECT_TRUE(end_of(next).status.ok()) << "the lock is free";
}

TEST_F(HostSetupTest, EndsWhatItStartedWhenDestroyed) {
  const LaunchRequest request = job("sleep 100 & setsid sleep 100 & wait");
  { EXPECT_FALSE(HostSetup(request).wait_for(0.2, -1)); }
  EXPECT_TRUE(find_tree(setup_mark(request)).empty());
  HostSetup next(job("true"));
  EXPECT_TRUE(end_of(next).status.ok());
}

// So nobody begins before a reaper has ended what a killed supervisor left.
TEST_F(HostSetupTest, KeepsTheLockInForkedProcesses) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t killed = ::fork();
  if (killed == 0) {
    HostSetup setup(job("exec sleep 100"));
    if (::fork() == 0) {  // the reaper
      ::sleep(8);         // longer than it takes to look, on a busy machine too
      ::_exit(0);
    }
    (void)setup.wait_for(0.1, -1);
    (void)!::write(ready[1], "x", 1);
    ::sleep(100);
    ::_exit(0);
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::kill(killed, SIGKILL);
  ::waitpid(killed, nullptr, 0);
  HostSetup next(job(kCount));
  EXPECT_FALSE(next.wait_for(0.3, -1));
  EXPECT_EQ(num_runs(), 0u);
  EXPECT_TRUE(end_of(next).status.ok());
  EXPECT_EQ(num_runs(), 1u);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(HostSetupTest, StartsRanksWhenAllHostsArePrepared) {
  HostSetup first(job(kCount, 2, 0));
  ASSERT_TRUE(becomes_true(30, [&] {
    EXPECT_FALSE(first.wait_for(0.1, -1)) << "node2 is not prepared";
    return is_marked("node1");
  }));
  HostSetup second(job(kCount, 2, 1));
  const LaunchResult result = end_of(second);
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(result.deciding_rank, 2) << "the first of its node";
  EXPECT_TRUE(end_of(first).status.ok());
  EXPECT_EQ(num_runs(), 2u);
}

TEST_F(HostSetupTest, NamesOfHostsStayNamesOfFiles) {
  for (const std::string& name : {std::string("../../x"), std::string("a/b"), std::string("."), std::string("a b"),
                                  std::string(500, 'n'), std::string(501, 'n'), std::string("")}) {
    LaunchRequest request = job(kCount);
    request.placement.nodes[0].host.name = name;
    HostSetup setup(request);
    EXPECT_TRUE(end_of(setup).status.ok()) << name;
  }
  EXPECT_EQ(num_runs(), 7u) << "each is another host";
  size_t num_files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.run() / "setup")) {
    EXPECT_TRUE(entry.is_regular_file());
    ++num_files;
  }
  EXPECT_EQ(num_files, 14u);
}
