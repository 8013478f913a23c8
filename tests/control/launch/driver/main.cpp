// A controller with one step, for tests of launchers that need servers of their own (tests/cli/slurm_test.py): starts
// or attaches to what a file asks for, says what happens in lines of JSON, and stops it on SIGTERM.
#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/signals.h"
#include "launch/host/job_state.h"
#include "launch/slurm/slurm.h"
#include "launch/slurm/slurm_queue.h"

using namespace assay;

namespace {

void say(const Json& line) {
  fmt::print("{}\n", to_line(line));
  std::fflush(stdout);
}

LaunchRequest request_of(const Json& value) {
  LaunchRequest request;
  request.command.argv = value.at("argv").get<std::vector<std::string>>();
  request.command.env = value.value("env", std::map<std::string, std::string>());
  request.command.cwd = value.at("cwd").get<std::string>();
  request.folder = value.at("folder").get<std::string>();
  request.ranks.nproc = value.value("nproc", 1);
  request.ranks.nnodes = value.value("nnodes", 1);
  request.run_id = value.at("run_id").get<std::string>();
  request.tree_mark = value.at("tree_mark").get<std::string>();
  request.attempt = value.value("attempt", 1);
  request.placement.hardware = value.value("hardware", "cpu");
  request.command.framework = value.value("framework", "");
  request.site.lease_s = value.value("lease_s", 60.0);
  request.time_limit_s = value.value("time_limit_s", 0.0);
  request.site.monitor_interval_s = value.value("monitor_interval_s", 0.0);
  return request;
}

int follow(RunningStep& step) {
  std::string queued;
  while (true) {
    const auto result = stop_signal() != 0 ? step.stop(2) : step.wait_for(0.1, stop_fd());
    if (std::string now = step.queued(); now != queued) say({{"queued", queued = now}});
    if (!result) continue;
    say({{"result", to_json(*result)}});
    return result->infrastructure.empty() ? result->status.shell_code() : kExitInfrastructure;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return kExitUsage;
  catch_stop_signals();
  try {
    const Json value = read_json_file(argv[2]);
    const Json slurm = value.value("slurm", Json::object());
    SlurmLauncher launcher({.partition = slurm.value("partition", ""),
                            .account = slurm.value("account", ""),
                            .options = slurm.value("options", std::vector<std::string>())});
    const LaunchRequest request = request_of(value);
    if (std::string(argv[1]) == "check") {
      say({{"problem", slurm_partition_problem(slurm.value("partition", ""), request.ranks.nnodes)}});
      return kExitPass;
    }
    const bool attach = std::string(argv[1]) == "attach";
    const auto step = attach ? launcher.attach(request) : launcher.start(request);
    say({{attach ? "attached" : "started", step != nullptr}});
    return step ? follow(*step) : kExitInvalid;
  } catch (const Error& error) {
    say({{"error", error.what()}, {"kind", kind_name(error.kind())}});
    return exit_code(error.kind());
  }
}
