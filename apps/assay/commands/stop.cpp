// assay stop RUN: ends a run cleanly, from another terminal.
#include <fmt/format.h>
#include <signal.h>

#include <cstring>
#include <memory>
#include <thread>

#include "base/signals.h"
#include "base/time.h"
#include "command.h"
#include "execute/run_services.h"
#include "run_names.h"

namespace assay {

namespace {

struct StopOptions {
  std::string run;
  double time_limit_s = 60;
};

// What a controller that is gone left running is ended by taking the run over.
void take_over_and_stop(Context& context, const std::filesystem::path& run) {
  RunFolder folder = RunFolder::open(run);
  if (!folder.plan().site) {
    context.console.info("this run is not at work");
    return;
  }
  const RunServices services = run_services(folder.plan());
  const size_t count = stop_orphans(folder, *services.launcher, services.options);
  context.console.info(fmt::format("stopped {} step{} that an earlier controller left", count, count == 1 ? "" : "s"));
}

void stop_run(Context& context, const StopOptions& options) {
  const auto run = find_run(context.runs, options.run);
  const auto controller = controller_of(run);
  if (!controller) {
    take_over_and_stop(context, run);
    return;
  }
  if (::kill(*controller, SIGTERM) != 0) {
    throw InfrastructureError(fmt::format("process {} cannot be stopped: {}", *controller, std::strerror(errno)));
  }
  const Stopwatch watch;
  while (controller_of(run)) {
    if (stop_signal() != 0) throw InterruptedError("stop");
    if (watch.seconds() > options.time_limit_s) {
      throw InfrastructureError(
          fmt::format("process {} has not ended within {}", *controller, duration_text(options.time_limit_s)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  context.console.info(fmt::format("stopped; go on with: assay resume {}", run.filename().string()));
}

}  // namespace

Command stop_command() {
  auto options = std::make_shared<StopOptions>();
  return {.name = "stop",
          .summary = "Stop a run cleanly, with everything it started on any host",
          .examples = "  assay stop last\n  assay stop last --time-limit 300",
          .notes = "assay resume continues it.",
          .options = {{.names = "run", .value = &options->run, .help = kRunHelp, .required = true},
                      {.names = "--time-limit",
                       .value = &options->time_limit_s,
                       .help = "Seconds to wait for its end",
                       .shows_default = true}},
          .run = [options](Context& context) { stop_run(context, *options); },
          .complete = run_names};
}

}  // namespace assay
