#include "launch/ssh/ssh_transport.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "../job_support.h"
#include "../ssh_support.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/version.h"
#include "launch/host/job.h"
#include "launch/host/job_state.h"
#include "launch/multi_node/host_error.h"
#include "launch/multi_node/hosts.h"

using namespace assay;

namespace {

class SshTransportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SshHosts::missing(); !why.empty()) GTEST_SKIP() << why;
    hosts_.emplace(2);
    launcher_.emplace(std::make_unique<SshTransport>());
    for (int i = 0; i < 2; ++i) hosts_->host(i).program = program_folder() / "assay";  // staging has tests of its own
  }
  void TearDown() override {
    if (!hosts_) return;
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(becomes_true(60, [&] { return !supervisor_lives(mirror(i), i); })) << "node " << i + 1;
      EXPECT_FALSE(folder_.rank_lives(i));
    }
    launcher_.reset();
  }
  LaunchRequest request(const std::string& script, int nnodes = 2) {
    LaunchRequest out = folder_.request(script, nnodes);
    out.command.env.erase("ASSAY_LOCKS");  // each host has its own
    for (int i = 0; i < nnodes; ++i) out.placement.nodes[static_cast<size_t>(i)].host = hosts_->host(i);
    return out;
  }
  fs::path mirror(int i) { return hosts_->host(i).work_dir / "run-1/steps/1-train"; }
  // How start() fails on a job of one node.
  HostProblem problem_of() {
    try {
      SshTransport transport;
      transport.open(request("true", 1), 0)->prepare();
    } catch (const HostError& error) {
      message_ = error.what();
      return error.problem();
    }
    ADD_FAILURE() << "it did not fail";
    return HostProblem::Other;
  }

  JobFolder folder_;
  std::optional<SshHosts> hosts_;
  std::optional<HostsLauncher> launcher_;
  std::string message_;
};

}  // namespace

TEST_F(SshTransportTest, RunsAJobOverHostsAndFetchesItsLogs) {
  std::ofstream(folder_.step() / "config.json") << "{\"a\": 1}";
  LaunchRequest what = request(
      "cat steps/1-train/config.json; pwd; echo $RANK $WORLD_SIZE $MASTER_ADDR $SECRET; "
      "echo '{\"r\": '$RANK'}' > $ASSAY_RECORDS");
  what.command.env["SECRET"] = "it's $HOME; \"x\"";
  auto step = launcher_->start(what);
  const LaunchResult result = end_of(*step);
  EXPECT_TRUE(result.status.ok()) << result.infrastructure;
  EXPECT_EQ(result.infrastructure, "");
  EXPECT_EQ(result.ranks.size(), 2u);
  EXPECT_EQ(folder_.log(1), fmt::format("{{\"a\": 1}}{}\n1 2 127.0.0.2 it's $HOME; \"x\"\n",
                                        fs::canonical(hosts_->host(1).work_dir / "run-1").string()));
  EXPECT_EQ(read_file(folder_.step() / "records.jsonl"), "{\"r\": 0}\n");
  EXPECT_EQ(read_file(folder_.step() / "records.rank1.jsonl"), "{\"r\": 1}\n");
}

TEST_F(SshTransportTest, StopsTheOtherHostAtTheFirstFailingRank) {
  const Stopwatch watch;
  auto step = launcher_->start(request("test $RANK = 1 && exit 12; sleep 100"));
  const LaunchResult result = end_of(*step);
  EXPECT_EQ(result.deciding_rank, 1);
  EXPECT_EQ(result.status.code, 12);
  EXPECT_TRUE(result.failed_by_itself);
  EXPECT_EQ(result.infrastructure, "");
  EXPECT_LT(watch.seconds(), 60);
}

TEST_F(SshTransportTest, EndsEveryHostAtAStopOrDrop) {
  auto step = launcher_->start(request("sleep 100"));
  EXPECT_FALSE(step->wait_for(0.1, -1));
  EXPECT_FALSE(step->stop(1).failed_by_itself);
  EXPECT_FALSE(folder_.rank_lives(1));
  LaunchRequest again = request("sleep 100");
  again.attempt = 2;
  step = launcher_->start(again);
  EXPECT_TRUE(folder_.rank_lives(1));
  step.reset();
  EXPECT_FALSE(folder_.rank_lives(1));
}

TEST_F(SshTransportTest, ReconnectsWithoutDoubledOutput) {
  auto step = launcher_->start(
      request("i=0; until test -e go; do echo line $i; i=$((i+1)); sleep 0.01; done; echo last $i", 1));
  for (int i = 0; i < 3; ++i) {
    const size_t before = folder_.log(0).size();
    ASSERT_TRUE(becomes_true(60, [&] { return folder_.log(0).size() > before; })) << "after cut " << i;
    EXPECT_FALSE(step->wait_for(0, -1));
    hosts_->cut(0);
  }
  write_file_atomic(mirror(0).parent_path().parent_path() / "go", "");
  const LaunchResult result = end_of(*step, 60);
  EXPECT_TRUE(result.status.ok()) << result.infrastructure;
  const std::vector<std::string> lines = split(trim(folder_.log(0)), '\n');
  ASSERT_GE(lines.size(), 4u);
  for (size_t i = 0; i + 1 < lines.size(); ++i) EXPECT_EQ(lines[i], fmt::format("line {}", i));
  EXPECT_EQ(lines.back(), fmt::format("last {}", lines.size() - 1));
}

TEST_F(SshTransportTest, NamesALostHostAndEndsItsRanks) {
  LaunchRequest what = request("sleep 100");
  what.site.lease_s = 8;  // longer than a busy machine holds the others up
  auto step = launcher_->start(what);
  hosts_->stop(1);
  const LaunchResult result = end_of(*step, 60);
  const std::string silence = "node2: no contact for ";
  ASSERT_EQ(result.infrastructure.find(silence), 0u) << result.infrastructure;
  const std::string seconds = result.infrastructure.substr(silence.size());
  EXPECT_GE(parse_double(seconds.substr(0, seconds.find(' '))).value_or(0), what.site.lease_s) << result.infrastructure;
  EXPECT_TRUE(mentions(result.infrastructure, "refused")) << result.infrastructure;
  EXPECT_FALSE(result.failed_by_itself);
  EXPECT_TRUE(becomes_true(60, [&] { return !folder_.rank_lives(0) && !folder_.rank_lives(1); }));
}

TEST_F(SshTransportTest, DoesNotBlameRanksThatLostAHost) {
  LaunchRequest what = request("test $RANK = 0 && { until test -e go; do sleep 0.05; done; exit 13; }; sleep 100");
  what.site.lease_s = 30;
  auto step = launcher_->start(what);
  hosts_->stop(1);
  write_file_atomic(mirror(0).parent_path().parent_path() / "go", "");
  const LaunchResult result = end_of(*step);
  EXPECT_TRUE(mentions(result.infrastructure, "node2: ")) << result.infrastructure;
  hosts_->start(1);  // so that what runs there need not wait for its lease
  write_stop(mirror(1), 1, 0);
}

TEST_F(SshTransportTest, ReattachesAfterAKill) {
  LaunchRequest what = request("i=0; while test $i -lt 200; do echo line $i; i=$((i+1)); sleep 0.02; done");
  what.site.lease_s = 30;
  launcher_.reset();  // the child has a launcher of its own
  const pid_t controller = ::fork();
  if (controller == 0) {
    HostsLauncher launcher(std::make_unique<SshTransport>());
    auto step = launcher.start(what);
    step->wait_for(1000, -1);
    ::_exit(1);
  }
  EXPECT_TRUE(becomes_true(20, [&] { return folder_.log(1).size() > 100; }));
  ::kill(controller, SIGKILL);
  ::waitpid(controller, nullptr, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  launcher_.emplace(std::make_unique<SshTransport>());
  auto step = launcher_->attach(what);
  ASSERT_NE(step, nullptr);
  const LaunchResult result = end_of(*step);
  EXPECT_TRUE(result.status.ok()) << result.infrastructure;
  std::string all;
  for (int i = 0; i < 200; ++i) all += "line " + std::to_string(i) + "\n";
  EXPECT_EQ(folder_.log(0), all);
  EXPECT_EQ(folder_.log(1), all);
  auto once_more = launcher_->attach(what);
  ASSERT_NE(once_more, nullptr) << "it has ended, and can be heard of again";
  EXPECT_TRUE(end_of(*once_more).status.ok());
  EXPECT_EQ(folder_.log(1), all);
}

TEST_F(SshTransportTest, EndsEverythingWhenTheLeaseExpires) {
  LaunchRequest what = request("sleep 100");
  what.site.lease_s = 4;
  launcher_.reset();
  const pid_t controller = ::fork();
  if (controller == 0) {
    HostsLauncher launcher(std::make_unique<SshTransport>());
    auto step = launcher.start(what);
    step->wait_for(1000, -1);
    ::_exit(1);
  }
  EXPECT_TRUE(becomes_true(20, [&] { return folder_.rank_lives(0) && folder_.rank_lives(1); }));
  std::this_thread::sleep_for(std::chrono::seconds(5));
  EXPECT_TRUE(folder_.rank_lives(0)) << "it was kept";
  ::kill(controller, SIGKILL);
  ::waitpid(controller, nullptr, 0);
  EXPECT_TRUE(becomes_true(20, [&] { return !folder_.rank_lives(0) && !folder_.rank_lives(1); }));
  EXPECT_TRUE(becomes_true(10, [&] { return !supervisor_lives(mirror(0), 0) && !supervisor_lives(mirror(1), 1); }));
  launcher_.emplace(std::make_unique<SshTransport>());
  EXPECT_EQ(launcher_->attach(what), nullptr);
}

TEST_F(SshTransportTest, AppendsASecondAttempt) {
  LaunchRequest what = request("echo $TEXT; echo '{}' >> $ASSAY_RECORDS", 1);
  what.command.env["TEXT"] = "first";
  EXPECT_TRUE(end_of(*launcher_->start(what)).status.ok());
  std::ofstream(folder_.step() / "records.jsonl", std::ios::app) << "{\"torn";
  what.attempt = 2;
  what.command.env["TEXT"] = "second";
  what.placement.nodes[0].host = hosts_->host(1);  // elsewhere, where nothing of the first is
  EXPECT_TRUE(end_of(*launcher_->start(what)).status.ok());
  EXPECT_EQ(folder_.log(0), "first\nsecond\n");
  EXPECT_EQ(read_file(folder_.step() / "records.jsonl"), "{}\n{}\n");
  what.attempt = 3;
  what.command.env["TEXT"] = "third";
  EXPECT_TRUE(end_of(*launcher_->start(what)).status.ok());
  EXPECT_EQ(folder_.log(0), "first\nsecond\nthird\n");
}

TEST_F(SshTransportTest, StagesProgramsAndFetchesResults) {
  for (const bool with_rsync : {true, false}) {
    Host& host = hosts_->host(0);
    host.program.clear();
    if (!with_rsync) {
      // A host whose PATH has everything but rsync.
      const fs::path bin = hosts_->top() / "bin";
      make_folder(bin);
      for (const char* tool : {"sh", "mkdir", "cat", "mv", "rm", "sha256sum", "find", "sleep", "cp"}) {
        fs::create_symlink(fs::path("/usr/bin") / tool, bin / tool);
      }
      hosts_->stop(0);
      hosts_->set_variable(0, "PATH=" + bin.string());
      hosts_->start(0);
      host.work_dir = hosts_->top() / "second home";
      fs::remove_all(folder_.step() / "output");
      launcher_.emplace(std::make_unique<SshTransport>());
    }
    make_folder(folder_.run() / "data/a b");
    std::ofstream(folder_.run() / "data/a b/it's \"x\" [1].txt") << "data";
    std::ofstream(folder_.step() / "config.json") << "config";
    LaunchRequest what = request(
        "mkdir -p 'steps/1-train/output/sub dir'; cat 'data/a b/'* > 'steps/1-train/output/sub dir/m.bin'; "
        "cp steps/1-train/config.json steps/1-train/output/c; command -v rsync > /dev/null || echo no rsync",
        1);
    what.staging.staged = {"data", folder_.step() / "config.json"};
    what.staging.collect = {"output", "not-there"};
    what.attempt = with_rsync ? 1 : 2;
    auto step = launcher_->start(what);
    const LaunchResult result = end_of(*step);
    EXPECT_TRUE(result.status.ok()) << folder_.log(0);
    EXPECT_EQ(result.infrastructure, "") << with_rsync;
    EXPECT_EQ(mentions(folder_.log(0), "no rsync"), !with_rsync);
    EXPECT_EQ(read_file(folder_.step() / "output/sub dir/m.bin"), "data") << with_rsync;
    EXPECT_EQ(read_file(folder_.step() / "output/c"), "config");
    std::vector<std::string> programs;
    for (const auto& entry : fs::directory_iterator(host.work_dir / "programs"))
      programs.push_back(entry.path().string());
    ASSERT_EQ(programs.size(), 1u) << "one set of programs, and nothing half copied";
    EXPECT_EQ(sha256_file(fs::path(programs[0]) / "assay"), sha256_file(program_folder() / "assay"));
    EXPECT_FALSE(supervisor_lives(host.work_dir / "run-1/steps/1-train", 0));
  }
}

TEST_F(SshTransportTest, DetectsDifferentCopiesBothWays) {
  const fs::path bin = hosts_->top() / "bin";
  make_folder(bin);
  const auto tool = [&](const char* name, const std::string& script) {
    std::ofstream(bin / name) << "#!/bin/sh\n" << script;
    fs::permissions(bin / name, fs::perms::owner_all);
  };
  hosts_->stop(0);
  hosts_->set_variable(0, "PATH=" + bin.string() + ":/usr/bin:/bin");
  hosts_->start(0);
  std::ofstream(folder_.step() / "config.json") << "config";
  const std::string far = (mirror(0) / "config.json").string();
  tool("rsync", "/usr/bin/rsync \"$@\"; code=$?; test -e " + far + " && echo x >> " + far + "; exit $code\n");
  EXPECT_EQ(problem_of(), HostProblem::Damaged) << message_;
  EXPECT_TRUE(mentions(message_, "config.json")) << message_;
  fs::remove(bin / "rsync");
  // And there: the host names another hash than that of what it sends.
  tool("sha256sum",
       "test $# -gt 1 && exec /usr/bin/sha256sum \"$@\"; /usr/bin/sha256sum \"$@\" | sed 's/^..../0000/'\n");
  LaunchRequest what = request("mkdir steps/1-train/output; echo model > steps/1-train/output/m", 1);
  what.staging.collect = {"output"};
  auto step = launcher_->start(what);
  const LaunchResult result = end_of(*step);
  EXPECT_TRUE(mentions(result.infrastructure, "node1: output/m was brought back, and is not what it is there"))
      << result.infrastructure;
}

TEST_F(SshTransportTest, KeepsSecretsOffCommandLines) {
  LaunchRequest what = request("sleep 100", 1);
  what.command.env["TOKEN"] = "tok-4711-en";
  auto step = launcher_->start(what);
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline");
    const std::string line((std::istreambuf_iterator<char>(file)), {});
    EXPECT_FALSE(mentions(line, "tok-4711-en")) << line;
  }
  step->stop(0);
  for (const auto& entry : fs::directory_iterator(mirror(0))) {
    if (entry.path().filename() == "job.node0.json") continue;
    EXPECT_FALSE(mentions(read_file(entry.path()), "tok-4711-en")) << entry.path();
  }
  EXPECT_EQ(fs::status(mirror(0) / "job.node0.json").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(SshTransportTest, ExplainsAnUnreachableHost) {
  Host& host = hosts_->host(0);
  const Host good = host;
  host.address = "no-such-host.invalid";
  EXPECT_EQ(problem_of(), HostProblem::UnknownHost) << message_;
  host = good;
  std::ofstream(hosts_->top() / "empty") << "";
  host.known_hosts = hosts_->top() / "empty";
  EXPECT_EQ(problem_of(), HostProblem::KeyUnknown) << message_;
  EXPECT_TRUE(mentions(message_, "node1: the key of node1 is not in " + host.known_hosts.string())) << message_;
  EXPECT_TRUE(mentions(message_, fmt::format("ssh-keyscan -p {} 127.0.0.2 >> ", host.port))) << message_;
  const auto other = split(read_file(hosts_->top() / "id.pub"), ' ');
  std::ofstream(host.known_hosts) << fmt::format("[127.0.0.2]:{} {} {}\n", host.port, other[0], other[1]);
  EXPECT_EQ(problem_of(), HostProblem::KeyChanged) << message_;
  host = good;
  host.identity_file = hosts_->top() / "host_key";
  EXPECT_EQ(problem_of(), HostProblem::PermissionDenied) << message_;
  host = good;
  hosts_->stop(0);
  EXPECT_EQ(problem_of(), HostProblem::Refused) << message_;
  hosts_->start(0);
  host.name = "-oProxyCommand=x";
  EXPECT_THROW(SshTransport().open(request("true", 1), 0), ConfigError);
  host = good;
}

TEST_F(SshTransportTest, ExplainsAnUnusableWorkFolder) {
  Host& host = hosts_->host(0);
  std::ofstream(hosts_->top() / "file") << "";
  host.work_dir = hosts_->top() / "file/sub";
  EXPECT_EQ(problem_of(), HostProblem::NotWritable) << message_;
  EXPECT_TRUE(mentions(message_, "node1: its work folder " + host.work_dir.string())) << message_;
  host.work_dir = hosts_->top() / "home1";
}

TEST_F(SshTransportTest, ExplainsAnotherVersionOfAssay) {
  Host& host = hosts_->host(0);
  host.program = hosts_->top() / "old-assay";
  EXPECT_EQ(problem_of(), HostProblem::WrongVersion) << message_;
  std::ofstream(host.program) << "#!/bin/sh\necho 'assay 0.0.1 (old)'\n";
  fs::permissions(host.program, fs::perms::owner_all);
  EXPECT_EQ(problem_of(), HostProblem::WrongVersion) << message_;
  EXPECT_TRUE(mentions(message_, "is assay 0.0.1 (old), and this is assay " + version())) << message_;
}

TEST_F(SshTransportTest, ExplainsAFullDisk) {
  const fs::path small = hosts_->top() / "small";
  make_folder(small);
  if (::geteuid() != 0 || ::mount("none", small.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "a small disk needs root and mount";
  }
  Host& host = hosts_->host(0);
  host.work_dir = small / "w";
  host.program.clear();  // which are larger
  EXPECT_EQ(problem_of(), HostProblem::NoSpace) << message_;
  EXPECT_TRUE(mentions(message_, "node1: no space left on its disk")) << message_;
  ::umount2(small.c_str(), MNT_DETACH);
  host.work_dir = hosts_->top() / "home1";
}

TEST_F(SshTransportTest, RejectsASecondJobOnADevice) {
  auto step = launcher_->start(request("sleep 100", 1));
  const JobFolder other;
  LaunchRequest second = other.request("true");
  second.command.env.clear();
  second.run_id = "run-2";
  second.placement.nodes[0].host = hosts_->host(0);
  const std::string message = message_of<InfrastructureError>([&] { launcher_->start(second); });
  EXPECT_TRUE(mentions(message, "node1: device test 0 of ")) << message;
  EXPECT_TRUE(mentions(message, "run run-1 of user ")) << message;
  step->stop(0);
  EXPECT_TRUE(end_of(*launcher_->start(second)).status.ok());
}

TEST_F(SshTransportTest, StartsManyHostsAtOnce) {
  const char* given = std::getenv("ASSAY_TEST_HOSTS");  // 64 for a measurement
  const int num_hosts = given ? std::max(2, std::atoi(given)) : 16;
  SshHosts many(num_hosts);
  LaunchRequest what = folder_.request("echo $RANK", num_hosts);
  what.command.env.clear();
  for (int i = 0; i < num_hosts; ++i) {
    what.placement.nodes[static_cast<size_t>(i)].host = many.host(i);
  }
  // Each takes a second to start: one after the other they would take that many.
  const fs::path slow = many.top() / "slow-assay";
  std::ofstream(slow) << "#!/bin/sh\ntest $1 = supervise && sleep 1\nexec " << (program_folder() / "assay").string()
                      << " \"$@\"\n";
  fs::permissions(slow, fs::perms::owner_all);
  for (NodePlace& node : what.placement.nodes) node.host.program = slow;
  const Stopwatch watch;
  auto step = launcher_->start(what);
  const double started_s = watch.seconds();
  EXPECT_TRUE(end_of(*step).status.ok());
  fmt::print("{} hosts, a second each, started in {:.2f} s\n", num_hosts, started_s);
  EXPECT_LT(started_s, 0.7 * num_hosts);
  EXPECT_EQ(folder_.log(num_hosts - 1), fmt::format("{}\n", num_hosts - 1));
}
