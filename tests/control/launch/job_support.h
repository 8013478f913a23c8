// Jobs of shell commands, for the tests of supervisors and launchers.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>

#include "base/files.h"
#include "base/time.h"
#include "launch/launcher.h"

namespace assay {

// Polls until it is true; false after the time.
inline bool becomes_true(double seconds, const std::function<bool()>& condition) {
  const Stopwatch watch;
  while (!condition()) {
    if (watch.seconds() > seconds) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

// A run folder with one step, and requests for it.
class JobFolder {
 public:
  JobFolder() {
    make_folder(step());
    make_folder(locks());
  }
  fs::path run() const { return folder_.path() / "run-1"; }
  fs::path step() const { return run() / "steps/1-train"; }
  fs::path locks() const { return folder_.path() / "locks"; }
  fs::path top() const { return folder_.path(); }

  LaunchRequest request(const std::string& script, int nnodes = 1, int nproc = 1) const {
    LaunchRequest out{
        .command = {.argv = {"/bin/sh", "-c", script}, .env = {{"ASSAY_LOCKS", locks().string()}}, .cwd = run()},
        .folder = step(),
        .ranks = {.nproc = nproc, .nnodes = nnodes},
        .tree_mark = mark_,
        .run_id = "run-1",
        .placement = {.hardware = "test"}};
    for (int i = 0; i < nnodes; ++i) {
      NodePlace place{.host = {.name = "node" + std::to_string(i + 1)}};
      for (int p = 0; p < nproc; ++p) place.devices.push_back(i * nproc + p);
      out.placement.nodes.push_back(place);
    }
    return out;
  }
  bool rank_lives(int rank) const { return !find_tree(mark_ + "/" + std::to_string(rank)).empty(); }
  std::string log(int rank) const {
    const fs::path path = step() / ("rank" + std::to_string(rank) + ".log");
    return fs::exists(path) ? read_file(path) : "";
  }

 private:
  TempFolder folder_{"assay-job"};
  std::string mark_ = "job-test-" + std::to_string(now_us());
};

// Waits for the end of a step; fails the test when it does not come.
inline LaunchResult end_of(RunningStep& step, double seconds = 30) {
  const auto result = step.wait_for(seconds, -1);
  EXPECT_TRUE(result.has_value()) << "still runs after " << seconds << " s";
  return result.value_or(LaunchResult{});
}

inline bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The message of the error of this type that `work` throws; "" and a failed test when it throws none.
template <typename E>
std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace assay
