#include "base/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/signals.h"
#include "base/text.h"
#include "base/time.h"

using namespace assay;

namespace {

std::vector<std::string> shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

// A process that ended but was not waited for yet (a zombie) is not alive.
bool alive_now(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  return (stat >> number >> name >> state) && state != "Z";
}

// A killed process needs a moment to become a zombie.
bool alive(pid_t pid) {
  for (int i = 0; i < 100 && alive_now(pid); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return alive_now(pid);
}

void wait_for_file(const fs::path& path) {
  for (int i = 0; i < 500 && (!fs::exists(path) || fs::file_size(path) == 0); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(fs::exists(path));
}

}  // namespace

TEST(Process, KeepsExitCodeAndSignalApart) {
  const ExitStatus code = run_process({.argv = shell("exit 7")});
  EXPECT_EQ(code.code, 7);
  EXPECT_EQ(code.signal, std::nullopt);
  EXPECT_EQ(code.text(), "exit code 7");
  const ExitStatus signal = run_process({.argv = shell("kill -9 $$")});
  EXPECT_EQ(signal.code, std::nullopt);
  EXPECT_EQ(signal.signal, 9);
  EXPECT_EQ(signal.shell_code(), 137);
  EXPECT_TRUE(run_process({.argv = {"true"}}).ok());
}

TEST(Process, PassesArgumentsUninterpreted) {
  const std::string hostile = "a b; $(touch /tmp/never) 'x' \"y\" *";
  EXPECT_EQ(capture({.argv = {"printf", "%s", hostile}}).out, hostile);
}

TEST(Process, SetsEnvironmentFolderAndOutput) {
  const TempFolder folder;
  const auto log = folder.path() / "log";
  std::ofstream(log) << "before\n";
  const ExitStatus status = run_process({.argv = shell("echo $GREETING; pwd; echo problem >&2; test -n \"$PATH\""),
                                         .env = {{"GREETING", "hello there"}},
                                         .cwd = folder.path(),
                                         .output_file = log});
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(read_file(log), "before\nhello there\n" + fs::canonical(folder.path()).string() + "\nproblem\n");
}

TEST(Process, NamesAMissingProgramOrFolder) {
  try {
    run_process({.argv = {"no-such-program-here"}});
    FAIL();
  } catch (const InfrastructureError& error) {
    EXPECT_NE(std::string(error.what()).find("no-such-program-here"), std::string::npos);
  }
  try {
    run_process({.argv = {"true"}, .cwd = "/no/such/folder"});
    FAIL();
  } catch (const InfrastructureError& error) {
    EXPECT_NE(std::string(error.what()).find("/no/such/folder"), std::string::npos);
  }
}

TEST(Process, StopsTheWholeTreeAtTheTimeLimit) {
  const TempFolder folder;
  const auto pids = folder.path() / "pids";
  // A child in the group, one in a session of its own that outlives its parent, and one that ignores SIGTERM.
  const std::string script =
      "sleep 100 & echo $! >> pids; setsid sh -c 'echo $$ >> pids; exec sleep 100' & "
      "sh -c 'trap \"\" TERM; echo $$ >> pids; while true; do sleep 1; done' & wait";
  const Stopwatch watch;
  const ExitStatus status = run_process({.argv = shell(script), .cwd = folder.path()}, 0.7);
  EXPECT_TRUE(status.timed_out);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.text(), "stopped at its time limit");
  EXPECT_LT(watch.seconds(), 8);
  const auto lines = tail_lines(pids, 10);
  ASSERT_EQ(lines.size(), 3u);
  for (const std::string& line : lines) EXPECT_FALSE(alive(static_cast<pid_t>(*parse_int(line)))) << line;
}

TEST(Process, RequestsAStopOnce) {
  const TempFolder folder;
  Process process = Process::start(
      {.argv = shell(
           "trap 'echo term >> log' TERM; echo up > up; while [ ! -s log ]; do sleep 0.05; done; sleep 0.4; exit 5"),
       .cwd = folder.path()});
  wait_for_file(folder.path() / "up");
  process.request_stop();
  const ExitStatus status = process.stop(10);
  EXPECT_EQ(status.code, 5);
  EXPECT_EQ(read_file(folder.path() / "log"), "term\n");
}

TEST(Process, DiesWithItsParent) {
  const TempFolder folder;
  const auto pid_file = folder.path() / "pid";
  const pid_t parent = ::fork();
  if (parent == 0) {
    Process child = Process::start({.argv = shell("echo $$ > pid; exec sleep 100"), .cwd = folder.path()});
    ::pause();
    ::_exit(0);
  }
  wait_for_file(pid_file);
  const auto pid = static_cast<pid_t>(*parse_int(trim(read_file(pid_file))));
  ASSERT_TRUE(alive_now(pid));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  EXPECT_FALSE(alive(pid));
}

TEST(Process, ReturnsFromWaitingWhenWoken) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Process process = Process::start({.argv = {"sleep", "100"}});
  std::thread waker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    (void)!::write(ends[1], "x", 1);
  });
  const Stopwatch watch;
  EXPECT_FALSE(process.wait_for(30, ends[0]));
  EXPECT_LT(watch.seconds(), 5);
  waker.join();
  EXPECT_TRUE(process.stop(1).signal.has_value());
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Process, FindsOrphansByTheirMark) {
  const std::string mark = "process-test-" + std::to_string(now_us());
  run_process({.argv = shell("setsid sleep 100 & exit 0"), .tree_mark = mark});
  EXPECT_EQ(find_tree(mark).size(), 1u);
  EXPECT_EQ(kill_tree(mark), 1u);
  EXPECT_TRUE(find_tree(mark).empty());
}

TEST(Process, MeasuresMemory) {
  const ExitStatus status = run_process({.argv = {"/bin/true"}});
  EXPECT_GT(status.max_rss_bytes, 100 * 1024);
}

TEST(Process, LimitsCapturedOutput) {
  const CapturedOutput output = capture({.argv = shell("echo early; sleep 100")}, 0.3);
  EXPECT_TRUE(output.status.timed_out);
  EXPECT_EQ(output.out, "early\n");
}
