// Several hosts on one machine: network namespaces, each with its own address, host name and /dev/shm, joined by a
// cable that can be cut. Needs root, ip, unshare and nsenter.
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "job.h"

using namespace assay;
using namespace assay::comm_test;

namespace {

constexpr double kLimit_s = 10;

bool does(const std::vector<std::string>& argv, std::string* problem = nullptr) {
  const CapturedOutput output = capture({.argv = argv}, 10);
  if (problem && !output.status.ok()) *problem = shell_line(argv) + ": " + output.err;
  return output.status.ok();
}

// A namespace lives as long as the process that sleeps in it.
class Host {
 public:
  explicit Host(const std::string& name)
      : process_(
            Process::start({.argv = {"unshare", "-n", "-u", "-i", "-m", "--propagation", "private", "sh", "-c",
                                     "hostname " + name +
                                         " && mount -t tmpfs shm /dev/shm && ip link set lo up && exec sleep 300"}})) {}
  std::vector<std::string> enter() const {
    return {"nsenter", "-t", std::to_string(process_.pid()), "-n", "-u", "-i", "-m", "--"};
  }
  std::vector<std::string> command(std::vector<std::string> argv) const {
    std::vector<std::string> whole = enter();
    whole.insert(whole.end(), argv.begin(), argv.end());
    return whole;
  }
  pid_t pid() const { return process_.pid(); }
  // It has left our network and brought its own up.
  bool ready() const {
    for (int i = 0; i < 200; ++i) {
      std::ifstream comm("/proc/" + std::to_string(pid()) + "/comm");
      std::string name;
      if (comm >> name && name == "sleep") return true;
      ::usleep(10000);
    }
    return false;
  }

 private:
  Process process_;
};

class Hosts : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
    for (const char* tool : {"ip", "unshare", "nsenter"}) {
      std::string problem;
      try {
        if (!does({tool, std::string(tool) == "ip" ? "-V" : "--version"}, &problem)) GTEST_SKIP() << problem;
      } catch (const std::exception& error) {
        GTEST_SKIP() << error.what() << " (Debian: iproute2, util-linux)";
      }
    }
    if (!does({"unshare", "-n", "-u", "-i", "-m", "true"})) GTEST_SKIP() << "this system allows no new namespaces";
    first_ = std::make_unique<Host>("node1");
    second_ = std::make_unique<Host>("node2");
    std::string problem;
    const auto on = [&](const Host& host, std::vector<std::string> argv) {
      return problem.empty() && does(host.command(std::move(argv)), &problem);
    };
    ASSERT_TRUE(first_->ready() && second_->ready());
    if (!on(*first_, {"ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns",
                      std::to_string(second_->pid())})) {
      GTEST_SKIP() << "no cable between namespaces: " << problem;
    }
    ASSERT_TRUE(on(*first_, {"ip", "addr", "add", "10.99.0.1/24", "dev", "cable"}) &&
                on(*second_, {"ip", "addr", "add", "10.99.0.2/24", "dev", "cable"}) &&
                on(*first_, {"ip", "link", "set", "cable", "up"}) && on(*second_, {"ip", "link", "set", "cable", "up"}))
        << problem;
  }

  // The first `on_first` ranks on the first host, the rest on the second.
  std::unique_ptr<Job> start(int world_size, int on_first, const std::vector<std::string>& arguments) {
    auto job = std::make_unique<Job>(
        world_size, Environment{{"MASTER_ADDR", "10.99.0.1"}, {"TIME_LIMIT", std::to_string(kLimit_s)}});
    for (int rank = 0; rank < world_size; ++rank) {
      job->start(rank, arguments, {}, (rank < on_first ? *first_ : *second_).enter());
    }
    return job;
  }

  void expect_all_fine(int world_size, int on_first, const std::vector<std::string>& arguments) {
    auto job = start(world_size, on_first, arguments);
    for (int rank = 0; rank < world_size; ++rank) {
      const Job::End end = job->end(rank);
      EXPECT_TRUE(end.status.ok()) << arguments[0] << ", rank " << rank << ": " << end.status.text() << "\n"
                                   << end.output;
    }
  }

  std::unique_ptr<Host> first_, second_;
};

}  // namespace

TEST_F(Hosts, FindsAndReportsHosts) {
  auto job = start(4, 2, {"describe"});
  for (int rank = 0; rank < 4; ++rank) {
    const Job::End end = job->end(rank);
    EXPECT_NE(
        end.output.find("4 processes on 2 hosts; shared memory within a host, gloo over cable between hosts; local " +
                        std::to_string(rank % 2) + " of 2"),
        std::string::npos)
        << end.output;
  }
}

TEST_F(Hosts, RunCollectivesOnTwoHostsWithTwoProcessesEach) { expect_all_fine(4, 2, {"collectives"}); }
TEST_F(Hosts, RunCollectivesLargerThanARound) { expect_all_fine(4, 2, {"collectives", "1200001"}); }
TEST_F(Hosts, RunCollectivesOnUnequalHosts) { expect_all_fine(3, 2, {"collectives", "0", "5", "70001"}); }
TEST_F(Hosts, RunCollectivesWithOneProcessPerHost) { expect_all_fine(2, 1, {"collectives", "0", "5", "70001"}); }

TEST_F(Hosts, RunBuffersGroupsOrderAndMessages) {
  for (const char* scenario : {"buffers", "groups", "order", "messages"}) expect_all_fine(4, 2, {scenario});
}

TEST_F(Hosts, GiveTheSameBitsOnAnyHosts) {
  std::string bits;
  for (const int on_first : {4, 2, 3}) {
    auto job = start(4, on_first, {"bits"});
    for (int rank = 0; rank < 4; ++rank) {
      const Job::End end = job->end(rank);
      const size_t at = end.output.find("bits ");
      ASSERT_NE(at, std::string::npos) << end.output;
      if (bits.empty()) bits = end.output.substr(at, 69);
      EXPECT_EQ(end.output.substr(at, 69), bits) << on_first << " on the first host, rank " << rank;
    }
  }
}

TEST_F(Hosts, EndEveryRankAtACutCableAndNameOne) {
  for (const char* kind : {"all_reduce", "messages"}) {
    auto job = start(4, 2, {"loop", kind});
    job->await("looping");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ASSERT_TRUE(does(second_->command({"ip", "link", "set", "cable", "down"})));
    const Stopwatch watch;
    for (int rank = 0; rank < 4; ++rank) {
      const Job::End end = job->end(rank);
      EXPECT_EQ(end.status.code, 13) << end.status.text() << "\n" << end.output;
      const char* lost = rank < 2 ? "ranks 2 and 3 are lost" : "rank 0 is lost";
      EXPECT_NE(end.output.find(lost), std::string::npos) << "rank " << rank << ": " << end.output;
    }
    EXPECT_LT(watch.seconds(), 5 * kLimit_s);
    ASSERT_TRUE(does(second_->command({"ip", "link", "set", "cable", "up"})));
  }
}

TEST_F(Hosts, NameAKilledRankOnBothHosts) {
  auto job = start(4, 2, {"loop", "all_gather"});
  job->await("looping");
  job->kill(3, SIGKILL);
  for (int rank = 0; rank < 3; ++rank) {
    const Job::End end = job->end(rank);
    EXPECT_EQ(end.status.code, 13) << end.output;
    EXPECT_NE(end.output.find("rank 3 is lost"), std::string::npos) << end.output;
  }
}

TEST_F(Hosts, RejectSharedMemoryAlone) {
  Job job(2, {{"MASTER_ADDR", "10.99.0.1"}, {"TRANSPORT", "shared_memory"}});
  job.start(0, {"describe"}, {}, first_->enter());
  job.start(1, {"describe"}, {}, second_->enter());
  for (int rank = 0; rank < 2; ++rank) {
    const Job::End end = job.end(rank);
    EXPECT_NE(end.output.find("transport shared_memory: rank 1 cannot share memory with rank 0; use auto"),
              std::string::npos)
        << end.output;
  }
}

TEST_F(Hosts, NameAnInterfaceThatLeadsNowhere) {
  Job job(2, {{"MASTER_ADDR", "10.99.0.1"}, {"INTERFACE", "lo"}, {"TIME_LIMIT", "3"}});
  job.start(0, {"describe"}, {}, first_->enter());
  job.start(1, {"describe"}, {}, second_->enter());
  const Stopwatch watch;
  for (int rank = 0; rank < 2; ++rank) {
    const Job::End end = job.end(rank);
    EXPECT_EQ(end.status.code, 13) << end.output;
    EXPECT_NE(end.output.find("127.0.0.1 cannot connect to all others"), std::string::npos) << end.output;
  }
  EXPECT_LT(watch.seconds(), 60);
}
