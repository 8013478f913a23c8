// Overhead of a step: a plan of N commands that do nothing, executed with its journal, beside starting and waiting for
// the same program N times. Prints JSON.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "execute/executor.h"
#include "launch/host/local.h"

extern char** environ;

namespace assay {
namespace {

constexpr char kNothing[] = "/bin/true";

double bare_seconds(int count) {
  const Stopwatch watch;
  for (int i = 0; i < count; ++i) {
    pid_t pid = 0;
    char* const argv[] = {const_cast<char*>(kNothing), nullptr};
    if (::posix_spawn(&pid, kNothing, nullptr, nullptr, argv, environ) != 0) throw InfrastructureError("cannot start");
    int status = 0;
    ::waitpid(pid, &status, 0);
  }
  return watch.seconds();
}

int64_t resident_kilobytes() {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    int64_t value = 0;
    if (word == "VmRSS:" && file >> value) return value;
  }
  return 0;
}

// A launcher that notes the memory of this process now and then.
class WatchedLauncher : public Launcher {
 public:
  explicit WatchedLauncher(int count) : count_(count) {}
  std::string name() const override { return "local"; }
  std::unique_ptr<RunningStep> start(const LaunchRequest& request) override {
    if (++num_started_ == count_ / 10) early_kb = resident_kilobytes();
    return launcher_.start(request);
  }
  int64_t early_kb = 0;

 private:
  LocalLauncher launcher_;
  int count_;
  int num_started_ = 0;
};

int run(int argc, char** argv) {
  int count = 10000;
  std::string folder;
  CLI::App app("overhead of the executor");
  app.add_option("folder", folder, "where the run folder goes")->required();
  app.add_option("--steps", count);
  CLI11_PARSE(app, argc, argv);
  Plan plan{.title = "nothing", .case_key = "", .steps = {}};
  for (int i = 0; i < count; ++i) {
    Step step;
    step.name = fmt::format("s{}", i);
    step.argv = {kNothing};
    plan.steps.push_back(step);
  }
  bare_seconds(count / 10);
  const double bare = bare_seconds(count);
  WatchedLauncher launcher(count);
  Console console(Console::Level::Quiet);
  RunFolder run = RunFolder::create(folder, plan, {"bench"});
  const Stopwatch watch;
  const Outcome outcome = execute(run, launcher, console);
  const double seconds = watch.seconds();
  fmt::print("{}\n", Json({{"steps", count},
                           {"passed", outcome == Outcome::Pass},
                           {"bare_ms", bare / count * 1e3},
                           {"step_ms", seconds / count * 1e3},
                           {"overhead_ms", (seconds - bare) / count * 1e3},
                           {"early_kb", launcher.early_kb},
                           {"late_kb", resident_kilobytes()}})
                         .dump());
  return 0;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) { return assay::run(argc, argv); }
