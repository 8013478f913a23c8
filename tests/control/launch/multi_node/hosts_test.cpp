#include "launch/multi_node/hosts.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../job_support.h"
#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "launch/host/job.h"
#include "launch/host/job_state.h"
#include "launch/local/local_transport.h"

using namespace assay;

namespace {

// Jobs on this machine, each node with a supervisor of its own.
class HostsTest : public ::testing::Test {
 protected:
  HostsTest() : launcher_(std::make_unique<LocalTransport>()) {}
  void TearDown() override {
    for (int node = 0; node < 4; ++node) {
      EXPECT_TRUE(becomes_true(60, [&] { return !supervisor_lives(folder_.step(), node); })) << "node " << node;
      EXPECT_FALSE(folder_.rank_lives(node));
    }
  }
  // Another controller, which starts the job and does nothing more until it is killed.
  pid_t start_elsewhere(const LaunchRequest& request) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        auto step = launcher_.start(request);
        step->wait_for(1000, -1);
        ::pause();
      } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
      }
      ::_exit(1);
    }
    return child;
  }
  bool all_run(int nnodes) {
    return becomes_true(60, [&] {
      for (int node = 0; node < nnodes; ++node) {
        const auto state = read_state(folder_.step(), node);
        if (!state || state->phase != JobState::Phase::Running) return false;
      }
      return true;
    });
  }
  void kill_controller(pid_t child) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }

  JobFolder folder_;
  HostsLauncher launcher_;
};

}  // namespace

TEST_F(HostsTest, PlacesEveryRankOfEveryNode) {
  LaunchRequest request =
      folder_.request("echo $RANK/$WORLD_SIZE $NODE_RANK $LOCAL_RANK $MASTER_ADDR:$MASTER_PORT $DEVS", 2, 2);
  request.site.visible_devices = "DEVS";
  auto step = launcher_.start(request);
  const LaunchResult result = end_of(*step);
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(result.infrastructure, "");
  EXPECT_EQ(result.ranks.size(), 4u);
  EXPECT_GT(result.max_rss_bytes, 0);
  const auto words = split(trim(folder_.log(3)), ' ');
  ASSERT_EQ(words.size(), 5u);
  EXPECT_EQ(words[0], "3/4");
  EXPECT_EQ(words[1] + words[2], "11");
  EXPECT_EQ(words[4], "2,3");
  EXPECT_EQ(split(trim(folder_.log(0)), ' ').at(3), words[3]) << "one port for all";
}

TEST_F(HostsTest, TakesTheFirstFailingRankOfAllHosts) {
  const Stopwatch watch;
  auto step = launcher_.start(folder_.request("test $RANK = 2 && exit 9; sleep 100", 3));
  const LaunchResult result = end_of(*step);
  EXPECT_EQ(result.deciding_rank, 2);
  EXPECT_EQ(result.status.code, 9);
  EXPECT_TRUE(result.failed_by_itself);
  EXPECT_EQ(result.infrastructure, "");
  EXPECT_TRUE(result.ranks[0].signal.has_value());
  EXPECT_LT(watch.seconds(), 60);
  EXPECT_FALSE(folder_.rank_lives(0));
}

TEST_F(HostsTest, PrefersACauseToALostConnection) {
  auto step = launcher_.start(folder_.request("test $RANK = 0 && exit 13; sleep 0.7; exit 12", 2));
  const LaunchResult result = end_of(*step);
  EXPECT_EQ(result.deciding_rank, 1);
  EXPECT_EQ(result.status.code, 12);
}

TEST_F(HostsTest, EndsEveryNodeAtAStop) {
  auto step = launcher_.start(folder_.request("sleep 100", 2));
  EXPECT_FALSE(step->wait_for(0.1, -1));
  const Stopwatch watch;
  const LaunchResult result = step->stop(1);
  EXPECT_LT(watch.seconds(), 60);
  EXPECT_FALSE(result.failed_by_itself);
  EXPECT_EQ(result.infrastructure, "");
  EXPECT_EQ(result.ranks.size(), 2u);
}

TEST_F(HostsTest, StopsADroppedStep) {
  const Stopwatch watch;
  { auto step = launcher_.start(folder_.request("trap '' TERM; sleep 100", 2)); }
  EXPECT_FALSE(folder_.rank_lives(0));
  EXPECT_FALSE(folder_.rank_lives(1));
  EXPECT_LT(watch.seconds(), 60);
}

TEST_F(HostsTest, LeavesNothingWhenOneNodeCannotStart) {
  LaunchRequest request = folder_.request("sleep 100", 2);
  request.placement.nodes[1].devices = request.placement.nodes[0].devices;  // both on one device of this machine
  const std::string message = message_of<InfrastructureError>([&] { launcher_.start(request); });
  EXPECT_TRUE(mentions(message, "device test 0")) << message;
  EXPECT_TRUE(mentions(message, "node1: ") || mentions(message, "node2: ")) << message;
  EXPECT_FALSE(folder_.rank_lives(0));
  EXPECT_FALSE(folder_.rank_lives(1));
}

TEST_F(HostsTest, BlamesTheInfrastructureForAKilledSupervisor) {
  auto step = launcher_.start(folder_.request("sleep 100", 2));
  ::kill(static_cast<pid_t>(read_state(folder_.step(), 1)->pid), SIGKILL);
  const LaunchResult result = end_of(*step);
  EXPECT_TRUE(mentions(result.infrastructure, "node2: its supervisor (process ")) << result.infrastructure;
  EXPECT_FALSE(result.failed_by_itself);
}

TEST_F(HostsTest, LeavesNothingRunningAfterAKill) {
  LaunchRequest request = folder_.request("sleep 100", 2);
  request.site.lease_s = 10;  // longer than a busy machine holds a process up
  const pid_t controller = start_elsewhere(request);
  ASSERT_TRUE(all_run(2));
  for (int time = 0; time < 2; ++time) {
    const std::string lease = read_lease(folder_.step(), 1);
    EXPECT_TRUE(becomes_true(30, [&] { return read_lease(folder_.step(), 1) != lease; })) << "it is renewed";
  }
  EXPECT_TRUE(folder_.rank_lives(1)) << "it was kept";
  kill_controller(controller);
  EXPECT_TRUE(becomes_true(60, [&] { return !folder_.rank_lives(0) && !folder_.rank_lives(1); }));
  ASSERT_TRUE(
      becomes_true(30, [&] { return !supervisor_lives(folder_.step(), 0) && !supervisor_lives(folder_.step(), 1); }));
  EXPECT_EQ(launcher_.attach(request), nullptr) << "nobody cared in time: to be started again";
}

TEST_F(HostsTest, ReattachesToRunningSteps) {
  LaunchRequest request = folder_.request("echo begun; until test -e go; do sleep 0.05; done; echo ended $RANK", 2);
  request.site.lease_s = 8;  // longer than a busy machine needs until the other has it
  const pid_t controller = start_elsewhere(request);
  ASSERT_TRUE(all_run(2));
  kill_controller(controller);
  auto step = launcher_.attach(request);
  ASSERT_NE(step, nullptr);
  EXPECT_FALSE(step->wait_for(request.site.lease_s + 2, -1)) << "kept beyond its lease";
  write_file_atomic(folder_.run() / "go", "");
  const LaunchResult result = end_of(*step);
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(folder_.log(1), "begun\nended 1\n");
}

TEST_F(HostsTest, ReportsWhatEndedMeanwhile) {
  const LaunchRequest request = folder_.request("until test -e go; do sleep 0.05; done; exit $((RANK * 5))", 2);
  const pid_t controller = start_elsewhere(request);
  ASSERT_TRUE(all_run(2));
  kill_controller(controller);
  write_file_atomic(folder_.run() / "go", "");
  ASSERT_TRUE(
      becomes_true(30, [&] { return !supervisor_lives(folder_.step(), 0) && !supervisor_lives(folder_.step(), 1); }));
  auto step = launcher_.attach(request);
  ASSERT_NE(step, nullptr);
  const LaunchResult result = end_of(*step, 10);
  EXPECT_EQ(result.deciding_rank, 1);
  EXPECT_EQ(result.status.code, 5);
}

TEST_F(HostsTest, DoesNotReattachToAnEarlierAttempt) {
  LaunchRequest request = folder_.request("true");
  EXPECT_EQ(launcher_.attach(request), nullptr) << "nothing was ever started";
  auto step = launcher_.start(request);
  end_of(*step);
  EXPECT_NE(launcher_.attach(request), nullptr);
  request.attempt = 2;
  EXPECT_EQ(launcher_.attach(request), nullptr);
}

TEST_F(HostsTest, EndsHalfAJob) {
  LaunchRequest one = folder_.request("sleep 100");
  const pid_t controller = start_elsewhere(one);
  ASSERT_TRUE(all_run(1));
  kill_controller(controller);
  LaunchRequest two = folder_.request("sleep 100", 2);
  EXPECT_EQ(launcher_.attach(two), nullptr);
  EXPECT_TRUE(becomes_true(30, [&] { return !folder_.rank_lives(0); }));
}

TEST_F(HostsTest, NamesATakenPort) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  LaunchRequest request = folder_.request("sleep 100", 2);
  const std::string port = std::to_string(ntohs(address.sin_port));
  request.command.env["MASTER_PORT"] = port;
  const std::string message = message_of<InfrastructureError>([&] { launcher_.start(request); });
  EXPECT_TRUE(mentions(message, "node1: port " + port + " is in use")) << message;
}

TEST_F(HostsTest, ShowsPaddleRanksAllNodes) {
  LaunchRequest request = folder_.request("echo $PADDLE_TRAINER_ENDPOINTS $PADDLE_CURRENT_ENDPOINT", 2);
  request.command.framework = "paddle";
  request.placement.nodes[0].host.address = "10.0.0.1";
  auto step = launcher_.start(request);
  EXPECT_TRUE(end_of(*step).status.ok());
  const auto first = split(trim(folder_.log(0)), ' ');
  const auto second = split(trim(folder_.log(1)), ' ');
  EXPECT_EQ(first.at(0), second.at(0));
  const auto endpoints = split(first.at(0), ',');
  ASSERT_EQ(endpoints.size(), 2u);
  EXPECT_EQ(endpoints[0], first.at(1));
  EXPECT_EQ(endpoints[1], second.at(1));
  EXPECT_EQ(split(endpoints[0], ':').at(0), "10.0.0.1");
}

TEST_F(HostsTest, GivesMindSporeRanksOneTable) {
  LaunchRequest request = folder_.request("cp $RANK_TABLE_FILE table.$RANK; echo $RANK_ID/$RANK_SIZE $DEVICE_ID", 2);
  request.command.framework = "mindspore_2.2";
  request.placement.nodes[0].host.address = "10.0.0.1";
  request.placement.nodes[1].host.address = "10.0.0.2";
  auto step = launcher_.start(request);
  EXPECT_TRUE(end_of(*step).status.ok());
  EXPECT_EQ(folder_.log(1), "1/2 1\n");
  const Json table = read_json_file(folder_.run() / "table.0");
  EXPECT_EQ(table, read_json_file(folder_.run() / "table.1"));
  EXPECT_EQ(table["server_list"][1]["server_id"], "10.0.0.2");
  EXPECT_EQ(table["server_list"][1]["device"],
            Json::parse(R"([{"device_id": "1", "device_ip": "10.0.0.2", "rank_id": "1"}])"));
}

TEST_F(HostsTest, RejectsARequestThatDoesNotFit) {
  LaunchRequest request = folder_.request("true", 2);
  request.placement.nodes.pop_back();
  EXPECT_THROW(launcher_.start(request), ConfigError);
}

TEST(ForAll, TellsOfEveryFailure) {
  std::atomic<int> calls{0};
  const std::string message = message_of<InfrastructureError>([&] {
    for_all(20, [&](size_t i) {
      ++calls;
      if (i % 10 == 3) throw InfrastructureError("node" + std::to_string(i) + ": no");
    });
  });
  EXPECT_EQ(calls, 20);
  EXPECT_EQ(message, "node3: no; node13: no");
  EXPECT_TRUE(
      mentions(message_of<InfrastructureError>([&] { for_all(200, [](size_t) { throw InfrastructureError("x"); }); }),
               "195 more hosts"));
}
