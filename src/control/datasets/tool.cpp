#include "datasets/tool.h"

#include <fmt/format.h>

#include "base/process.h"
#include "base/signals.h"
#include "base/text.h"
#include "base/time.h"
#include "datasets/progress.h"

namespace assay {

namespace {

constexpr double kTimeLimitS = 1800;
constexpr double kPollS = 0.2;
constexpr double kGraceS = 2;

}  // namespace

Finished run_tool(const Tool& tool) {
  Process process = Process::start({.argv = tool.argv,
                                    .env = {{"npm_config_update_notifier", "false"}, {"LC_ALL", "C.UTF-8"}},
                                    .cwd = tool.folder,
                                    .output_file = tool.log});
  const Stopwatch clock;
  while (true) {
    if (const auto status = process.wait_for(kPollS, stop_fd())) {
      return {status->ok(), join(tail_lines(tool.log, 4), "; ")};
    }
    if (stop_signal() != 0) {
      process.stop(kGraceS);
      check_stop();
    }
    if (clock.seconds() > kTimeLimitS) {
      process.stop(kGraceS);
      return {false, fmt::format("no end after {:.0f} minutes", kTimeLimitS / 60)};
    }
    tool.tick();
  }
}

}  // namespace assay
