// assay ps, assay logs, assay stop: runs that are at work, from another terminal.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <iostream>
#include <thread>

#include "base/signals.h"
#include "base/text.h"
#include "campaign_site.h"
#include "context.h"
#include "record/growing_file.h"
#include "report/figures.h"
#include "report/table.h"
#include "run_plan.h"

namespace assay {

namespace {

std::string state_text(const RunState& state, const std::optional<int>& controller) {
  if (controller) return "running";
  if (state.outcome) return std::string(outcome_name(*state.outcome));
  return "interrupted";
}

struct RunLine {
  std::string id, title, state;
  std::optional<int> controller;
  size_t done = 0, failed = 0, total = 0;
  std::vector<std::string> at_work;
  int64_t started_us = 0;
  std::optional<int64_t> ended_us;
};

RunLine line_of(const std::filesystem::path& path) {
  const RunState state = read_run_state(path);
  RunLine line;
  line.id = path.filename().string();
  line.title = state.title;
  line.controller = controller_of(path);
  line.state = state_text(state, line.controller);
  line.total = state.num_steps;
  line.started_us = state.started_us;
  line.ended_us = state.ended_us;
  for (const auto& [name, step] : state.steps) {
    if (step.running) {
      line.at_work.push_back(name);
    } else if (step.outcome) {
      ++line.done;
      line.failed += step.outcome == Outcome::Error || step.outcome == Outcome::Fail;
    }
  }
  return line;
}

Json to_json(const RunLine& line) {
  return {{"run", line.id},
          {"title", line.title},
          {"state", line.state},
          {"controller", line.controller ? Json(*line.controller) : Json(nullptr)},
          {"steps", line.total},
          {"done", line.done},
          {"failed", line.failed},
          {"at_work", line.at_work},
          {"started", utc_text(line.started_us)},
          {"ended", line.ended_us ? Json(utc_text(*line.ended_us)) : Json(nullptr)}};
}

void list_runs_at_work(Context& context, bool all) {
  std::vector<RunLine> lines;
  for (const auto& path : list_runs(context.runs)) {
    try {
      RunLine line = line_of(path);
      if (all || line.controller || line.state == "interrupted") lines.push_back(std::move(line));
    } catch (const DataError& error) {
      context.console.warn(error.what());
    }
  }
  if (context.json) {
    Json out = Json::array();
    for (const RunLine& line : lines) out.push_back(to_json(line));
    context.console.print(to_pretty(out) + "\n");
    return;
  }
  if (lines.empty()) {
    context.console.info(all ? "there are no runs" : "no run is at work; --all shows those that have ended");
    return;
  }
  Table table({{"run"},
               {"state"},
               {"done", Table::Align::Right},
               {"failed", Table::Align::Right},
               {"since"},
               {"at work", Table::Align::Left, true}});
  for (const RunLine& line : lines) {
    std::vector<std::string> some(line.at_work.begin(),
                                  line.at_work.begin() + std::min<ssize_t>(3, std::ssize(line.at_work)));
    std::string work = join(some, ", ");
    if (line.at_work.size() > some.size()) work += fmt::format(" and {} more", line.at_work.size() - some.size());
    table.add({line.id, line.state, fmt::format("{}/{}", line.done, line.total), std::to_string(line.failed),
               when_text(line.started_us), work});
  }
  context.console.print(table.text({.colours = colours_on(stdout)}));
}

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
  return run / record.plan.folder(step) / fmt::format("rank{}.log", options.rank);
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

// What a controller that is gone left running is ended by taking the run over.
void stop_orphans(Context& context, const std::filesystem::path& run) {
  RunFolder folder = RunFolder::open(run);
  if (folder.plan().campaign.is_null()) {
    context.console.info("this run is not at work");
    return;
  }
  const CampaignServices services = campaign_services(folder.plan(), {});
  const size_t count = stop_left_behind(folder, *services.launcher, services.options);
  context.console.info(fmt::format("stopped {} step{} that an earlier controller left", count, count == 1 ? "" : "s"));
}

void stop_run(Context& context, const std::string& name, double time_limit_s) {
  const auto run = find_run(context.runs, name);
  const auto controller = controller_of(run);
  if (!controller) {
    stop_orphans(context, run);
    return;
  }
  if (::kill(*controller, SIGTERM) != 0) {
    throw InfrastructureError(fmt::format("process {} cannot be stopped: {}", *controller, std::strerror(errno)));
  }
  const Stopwatch watch;
  while (controller_of(run)) {
    if (stop_signal() != 0) throw InterruptedError("stop");
    if (watch.seconds() > time_limit_s) {
      throw InfrastructureError(
          fmt::format("process {} has not ended within {}", *controller, duration_text(time_limit_s)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  context.console.info(fmt::format("stopped; go on with: assay resume {}", run.filename().string()));
}

}  // namespace

void add_ps_command(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("ps", "Runs that are at work or were interrupted");
  auto all = std::make_shared<bool>(false);
  command->add_flag("-a,--all", *all, "Also those that have ended");
  command->callback([all, &context] { list_runs_at_work(context, *all); });
}

void add_logs_command(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("logs", "What a rank of a run printed");
  command->footer(
      "Examples:\n  assay logs last -f\n  assay logs last --step resnet-libtorch-cpu-1x1-r2 --rank 1 -n 50");
  auto options = std::make_shared<LogsOptions>();
  command->add_option("run", options->run, "Run folder, its name, the beginning of its name, or 'last'")->required();
  command->add_option("--step", options->step, "Which step; default: the one at work, or the last");
  command->add_option("--rank", options->rank, "Which rank")->check(CLI::NonNegativeNumber)->capture_default_str();
  command->add_option("-n,--lines", options->lines, "Only the last so many lines");
  command->add_flag("-f,--follow", options->follow, "Go on while the run is at work");
  command->callback([options, &context] { show_log(context, *options); });
}

void add_stop_command(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("stop", "Stop a run cleanly, with everything it started on any host");
  struct Options {
    std::string run;
    double time_limit_s = 60;
  };
  auto options = std::make_shared<Options>();
  command->add_option("run", options->run, "Run folder, its name, the beginning of its name, or 'last'")->required();
  command->add_option("--time-limit", options->time_limit_s, "Seconds to wait for its end")->capture_default_str();
  command->callback([options, &context] { stop_run(context, options->run, options->time_limit_s); });
}

}  // namespace assay
