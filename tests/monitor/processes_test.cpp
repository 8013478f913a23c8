#include "monitor/processes.h"

#include <gtest/gtest.h>

#include <thread>

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
