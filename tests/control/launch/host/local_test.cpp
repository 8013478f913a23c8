#include "launch/host/local.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "base/time.h"
#include "launch/failure_rule.h"

using namespace assay;

namespace {

class LocalLauncherTest : public ::testing::Test {
 protected:
  LaunchRequest request(const std::string& script, int nproc = 1) {
    return {.command = {.argv = {"/bin/sh", "-c", script}, .env = {{"EXTRA", "e"}}, .cwd = folder_.path()},
            .folder = folder_.path(),
            .ranks = {.nproc = nproc},
            .tree_mark = "local-test-" + std::to_string(now_us())};
  }
  LaunchResult run(const LaunchRequest& what) {
    auto step = LocalLauncher().start(what);
    auto result = step->wait_for(30, -1);
    EXPECT_TRUE(result.has_value());
    return result.value_or(LaunchResult{});
  }
  std::string log(int rank) { return read_file(folder_.path() / ("rank" + std::to_string(rank) + ".log")); }
  TempFolder folder_;
};

}  // namespace

TEST_F(LocalLauncherTest, GivesEveryRankItsEnvironmentAndLog) {
  const LaunchResult result =
      run(request("echo $RANK/$WORLD_SIZE $LOCAL_RANK $MASTER_ADDR ${MASTER_PORT:-none} $EXTRA $ASSAY_RECORDS", 3));
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(result.ranks.size(), 3u);
  const auto words = split(trim(log(2)), ' ');
  ASSERT_EQ(words.size(), 6u);
  EXPECT_EQ(words[0], "2/3");
  EXPECT_EQ(words[1], "2");
  EXPECT_EQ(words[2], "127.0.0.1");
  EXPECT_NE(words[3], "none");
  EXPECT_EQ(words[4], "e");
  EXPECT_EQ(words[5], (folder_.path() / "records.rank2.jsonl").string());
  EXPECT_GT(result.max_rss_bytes, 0);
}

TEST_F(LocalLauncherTest, MakesTheLastRanksParameterServers) {
  LaunchRequest what = request(
      "echo $TRAINING_ROLE $PADDLE_PSERVERS_IP_PORT_LIST $PADDLE_TRAINERS_NUM ${PADDLE_TRAINER_ID:-none} "
      "${PADDLE_PORT:-none} $RANK",
      4);
  what.ranks.num_servers = 2;
  run(what);
  const auto words = [&](int rank) { return split(trim(log(rank)), ' '); };
  const std::string list = words(0).at(1);
  const auto servers = split(list, ',');
  ASSERT_EQ(servers.size(), 2u);
  EXPECT_NE(servers[0], servers[1]);
  const auto port = [&](int server) { return split(servers[server], ':').at(1); };
  EXPECT_EQ(words(0), (std::vector<std::string>{"TRAINER", list, "2", "0", "none", "0"}));
  EXPECT_EQ(words(1), (std::vector<std::string>{"TRAINER", list, "2", "1", "none", "1"}));
  EXPECT_EQ(words(2), (std::vector<std::string>{"PSERVER", list, "2", "none", port(0), "2"}));
  EXPECT_EQ(words(3), (std::vector<std::string>{"PSERVER", list, "2", "none", port(1), "3"}));
}

TEST_F(LocalLauncherTest, StopsTheOthersAtTheFirstFailingRank) {
  const Stopwatch watch;
  const LaunchResult result = run(request("test $RANK = 1 && exit 9; sleep 100", 3));
  EXPECT_EQ(result.status.code, 9);
  EXPECT_EQ(result.deciding_rank, 1);
  EXPECT_LT(watch.seconds(), 60);
  EXPECT_TRUE(result.ranks[0].signal.has_value());
}

TEST_F(LocalLauncherTest, GivesEveryRankTheSameGrace) {
  auto step = LocalLauncher().start(
      request("trap 'sleep 0.3; exit 3' TERM; touch up.$RANK; while true; do sleep 0.05; done", 4));
  for (int rank = 0; rank < 4; ++rank) {
    const fs::path up = folder_.path() / ("up." + std::to_string(rank));
    for (int i = 0; i < 3000 && !fs::exists(up); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const LaunchResult result = step->stop(60);
  for (const ExitStatus& rank : result.ranks) EXPECT_EQ(rank.code, 3) << "none was ended by force";
}

TEST_F(LocalLauncherTest, NamesAMissingProgramAndLeavesNothing) {
  LaunchRequest bad = request("");
  bad.command.argv = {"no-such-program"};
  try {
    LocalLauncher().start(bad);
    FAIL();
  } catch (const InfrastructureError& error) {
    EXPECT_NE(std::string(error.what()).find("no-such-program"), std::string::npos);
  }
  EXPECT_TRUE(find_tree(bad.tree_mark + "/0").empty());
}

TEST_F(LocalLauncherTest, KillsADroppedStep) {
  const LaunchRequest what = request("sleep 100");
  { auto step = LocalLauncher().start(what); }
  EXPECT_TRUE(find_tree(what.tree_mark + "/0").empty());
}

TEST_F(LocalLauncherTest, CountsOnTheRanksOfASecondNode) {
  LaunchRequest what = request("echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $NODE_RANK $MASTER_PORT", 2);
  what.ranks.nnodes = 3;
  what.ranks.node_rank = 2;
  what.command.env["MASTER_PORT"] = "4321";
  EXPECT_TRUE(run(what).status.ok());
  EXPECT_EQ(log(4), "4/6 0/2 2 4321\n");
  EXPECT_EQ(log(5), "5/6 1/2 2 4321\n");
}

TEST_F(LocalLauncherTest, PrefersACauseToALostConnection) {
  // Rank 0 notices first, rank 2 is the cause and takes a moment to end.
  const LaunchResult code =
      run(request("case $RANK in 0) exit 13;; 1) sleep 0.1; exit 13;; 2) sleep 0.4; exit 12;; esac", 3));
  EXPECT_EQ(code.deciding_rank, 2);
  EXPECT_EQ(code.status.code, 12);
  EXPECT_TRUE(code.failed_by_itself);
  const LaunchResult signal = run(request("case $RANK in 0) exit 13;; 1) kill -9 $$;; 2) sleep 100;; esac", 3));
  EXPECT_EQ(signal.deciding_rank, 1);
  EXPECT_EQ(signal.status.signal, 9);
  EXPECT_TRUE(signal.failed_by_itself);
}

TEST_F(LocalLauncherTest, ReportsALostConnectionWithoutAnotherCause) {
  const Stopwatch watch;
  const LaunchResult result = run(request("test $RANK = 1 && { sleep 0.1; exit 13; }; sleep 100", 3));
  EXPECT_EQ(result.deciding_rank, 1);
  EXPECT_EQ(result.status.code, 13);
  EXPECT_LT(watch.seconds(), kPeerGraceSeconds + 5);
  const LaunchResult all = run(request("exit 13", 3));
  EXPECT_EQ(all.status.code, 13);
}

TEST_F(LocalLauncherTest, DoesNotReportStoppedRanksAsFailed) {
  auto step = LocalLauncher().start(request("sleep 100", 2));
  const LaunchResult result = step->stop(1);
  EXPECT_TRUE(result.status.signal.has_value());
  EXPECT_FALSE(result.failed_by_itself);
}

TEST_F(LocalLauncherTest, NamesATakenPortAndStartsNothing) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int port = ntohs(address.sin_port);
  LaunchRequest what = request("touch started", 2);
  what.command.env["MASTER_PORT"] = std::to_string(port);
  try {
    LocalLauncher().start(what);
    FAIL();
  } catch (const InfrastructureError& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(port)), std::string::npos);
  }
  EXPECT_FALSE(fs::exists(folder_.path() / "started"));
  what.ranks.node_rank = 1;  // rank 0 is elsewhere, and so is its port
  what.ranks.nnodes = 2;
  EXPECT_TRUE(run(what).status.ok());
}
