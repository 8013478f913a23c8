// assay ps: runs that are at work, from another terminal.
#include <fmt/format.h>

#include <memory>

#include "base/text.h"
#include "command.h"
#include "report/figures.h"
#include "report/table.h"
#include "run/run_folder.h"

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

}  // namespace

Command ps_command() {
  auto all = std::make_shared<bool>(false);
  return {.name = "ps",
          .summary = "Runs that are at work or were interrupted",
          .examples = "  assay ps\n  assay ps --all --json",
          .options = {{.names = "-a,--all", .value = all.get(), .help = "Also those that have ended"}},
          .run = [all](Context& context) { list_runs_at_work(context, *all); }};
}

}  // namespace assay
