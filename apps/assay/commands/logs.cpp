// assay logs RUN: what a rank of a run printed, also while it runs.
#include <fmt/format.h>

#include <memory>
#include <thread>

#include "base/files.h"
#include "base/signals.h"
#include "base/text.h"
#include "command.h"
#include "layout/run_layout.h"
#include "record/growing_file.h"
#include "run_names.h"

namespace assay {

namespace {

struct LogsOptions {
  std::string run;
  std::string step;
  int rank = 0;
  bool follow = false;
  size_t lines = 0;
};

// The step that is meant: the one named, the one at work, the last that began.
std::filesystem::path log_file(const std::filesystem::path& run, const LogsOptions& options) {
  const RunRecord record = read_run(run);
  std::string step = options.step;
  if (step.empty()) {
    int64_t newest = -1;
    for (const auto& [name, state] : record.state.steps) {
      const int64_t when = state.started_us.value_or(0) + (state.running ? INT64_MAX / 2 : 0);
      if (state.started_us && when > newest && record.plan.step(name).kind != StepKind::Verify) {
        newest = when;
        step = name;
      }
    }
    if (step.empty()) throw UsageError(fmt::format("{}: no step has begun yet", run.string()));
  }
  std::vector<std::string> names;
  for (const Step& one : record.plan.steps) names.push_back(one.name);
  if (std::find(names.begin(), names.end(), step) == names.end()) {
    throw UsageError(fmt::format("{}: no step '{}'{}", run.string(), step, did_you_mean(step, names)));
  }
  return run / record.plan.folder(step) / layout::rank_log(options.rank);
}

void show_log(Context& context, const LogsOptions& options) {
  const auto run = find_run(context.runs, options.run);
  const auto file = log_file(run, options);
  if (!std::filesystem::exists(file) && !options.follow) {
    throw UsageError(fmt::format("{}: there is no such log; --rank chooses another", file.string()));
  }
  context.console.detail(file.string());
  if (options.lines > 0 && !options.follow) {
    for (const std::string& line : tail_lines(file, options.lines)) context.console.print(valid_utf8(line) + "\n");
    return;
  }
  if (!options.follow) {
    context.console.print(read_file(file));
    return;
  }
  GrowingFile log(file);
  while (true) {
    const std::string more = log.next();
    if (!more.empty()) context.console.print(more);
    if (stop_signal() != 0) throw InterruptedError("logs");
    if (more.empty() && !controller_of(run)) return;  // nobody writes any more
    if (more.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

}  // namespace

Command logs_command() {
  auto options = std::make_shared<LogsOptions>();
  return {
      .name = "logs",
      .summary = "What a rank of a run printed",
      .examples = "  assay logs last -f\n  assay logs last --step resnet-libtorch-cpu-1x1-r2 --rank 1 -n 50",
      .options = {{.names = "run", .value = &options->run, .help = kRunHelp, .required = true},
                  {.names = "--step",
                   .value = &options->step,
                   .help = "Which step; default: the one at work, or the last"},
                  {.names = "--rank", .value = &options->rank, .help = "Which rank", .shows_default = true, .min = 0},
                  {.names = "-n,--lines", .value = &options->lines, .help = "Only the last so many lines"},
                  {.names = "-f,--follow", .value = &options->follow, .help = "Go on while the run is at work"}},
      .run = [options](Context& context) { show_log(context, *options); },
      .complete = run_names};
}

}  // namespace assay
