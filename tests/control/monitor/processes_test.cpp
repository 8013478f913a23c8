#include "monitor/processes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "base/files.h"
#include "base/process.h"
#include "base/time.h"

using namespace assay;

TEST(ProcessTimes, KeepTheTimeOfChildrenThatEnded) {
  const std::string mark = "times-test-" + std::to_string(now_us());
  ProcessTimes times("/proc", mark);
  const double before = times.read().own;
  // A child that works for a while and ends; its parent waits for it and lives on.
  Process parent =
      Process::start({.argv = {"/bin/sh", "-c", "sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'; sleep 60"},
                      .tree_mark = mark});
  double most = 0;
  for (int i = 0; i < 400 && find_tree(mark).size() != 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  for (int i = 0; i < 100; ++i) {
    const double now = times.read().own - before;
    EXPECT_GE(now, most - 0.021) << "two ticks for rounding";
    most = std::max(most, now);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GT(most, 0);
  parent.stop(0);
}

namespace {

void put_process(const fs::path& proc, int pid, int parent, const std::string& mark, int ticks) {
  const fs::path folder = proc / std::to_string(pid);
  make_folder(folder);
  write_file_atomic(folder / "environ", std::string("ASSAY_TREE=") + mark + std::string(1, '\0'));
  write_file_atomic(folder / "stat", fmt::format("{} (sh) S {} 0 0 0 0 0 0 0 0 0 {} 0 0 0", pid, parent, ticks));
}

}  // namespace

// Of two runs beside ours one ends: what it used does not take away from what the other uses.
TEST(ProcessTimes, DoNotFallWhenProcessesEnd) {
  const TempFolder proc("proc");
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  ProcessTimes times(proc.path(), "job");
  put_process(proc.path(), 900001, 1, "other/0", 500);
  put_process(proc.path(), 900002, 1, "third/0", 100);
  put_process(proc.path(), 900003, 1, "job/0", 50);
  times.read();
  fs::remove_all(proc.path() / "900001");
  put_process(proc.path(), 900002, 1, "third/0", 130);
  MarkedTime now = times.read();
  EXPECT_NEAR(now.other_runs, 630 * tick, 1e-9);
  EXPECT_NEAR(now.own, 50 * tick, 1e-9);
  // One whose parent waited for it is the parent's, and is not counted twice.
  put_process(proc.path(), 900004, 900003, "job/0", 40);
  EXPECT_NEAR(times.read().own, 90 * tick, 1e-9);
  fs::remove_all(proc.path() / "900004");
  put_process(proc.path(), 900003, 1, "job/0", 95);
  now = times.read();
  EXPECT_NEAR(now.own, 95 * tick, 1e-9);
  EXPECT_NEAR(now.other_runs, 630 * tick, 1e-9);
}
