#include "run_plan.h"

#include <fmt/format.h>

#include "base/text.h"
#include "execute/run_services.h"
#include "launch/launchers.h"
#include "layout/run_layout.h"
#include "output_width.h"
#include "report/build_view.h"
#include "report/format.h"
#include "report/write_reports.h"
#include "results/store.h"

namespace assay {

namespace {

std::string shown_path(const std::filesystem::path& path) {
  const auto relative = path.lexically_proximate(std::filesystem::current_path());
  return relative.string().rfind("..", 0) == 0 ? path.string() : relative.string();
}

// For `assay history`. The run folder has it all, so a store that cannot be written is no fault of the run.
void store_or_warn(Context& context, const std::filesystem::path& run_folder) {
  try {
    store_results(run_folder);
  } catch (const Error& error) {
    context.console.warn(fmt::format("the results are not in the store: {}", error.what()));
  }
}

// Hosts that share no files get the data of cases before their first step.
void stage_data(Context& context, const Plan& plan) {
  if (!plan.site || plan.site->staged.empty()) return;
  launcher_named(plan.site->launcher).stage(*plan.site, [&](const std::string& text) { context.console.info(text); });
}

}  // namespace

void show_plan(Context& context, const Plan& plan) {
  plan.validate();
  context.console.print(context.json ? to_pretty(to_json(plan)) + "\n" : plan_text(plan));
}

void announce_run(Context& context, const RunFolder& folder) {
  context.console.info(fmt::format("{}  ({})", folder.plan().title, shown_path(folder.path())));
}

void run_in_folder(Context& context, RunFolder& folder, const ExecuteOptions& options) {
  try {
    stage_data(context, folder.plan());
    const RunServices services = run_services(folder.plan(), options);
    execute(folder, *services.launcher, context.console, services.options);
  } catch (const InterruptedError&) {
    context.console.info(
        fmt::format("interrupted; continue with: assay resume {}", shell_quote(shown_path(folder.path()))));
    throw;
  }
}

RunFolder run_plan(Context& context, const Plan& plan) {
  RunFolder folder = RunFolder::create(context.runs, plan, context.command);
  announce_run(context, folder);
  run_in_folder(context, folder);
  return folder;
}

int report_run(Context& context, const std::filesystem::path& run_folder, const std::string& format) {
  const std::string name = !format.empty() ? format : context.json ? "json" : "terminal";
  const ReportFormat& printed = report_format(name);  // before anything is written
  const RunView view = build_view(run_folder);
  write_reports(view, run_folder);
  store_or_warn(context, run_folder);
  context.console.print(printed.render(view, {.colours = colours_on(stdout), .width = output_width()}));
  if (name == "terminal") {
    context.console.print(fmt::format("report: {}\n", shown_path(run_folder / layout::kHtml)));
  }
  // A machine that failed is another answer than a case that did.
  const RunState state = read_run_state(run_folder);
  const bool by_infrastructure =
      std::any_of(state.steps.begin(), state.steps.end(), [](const auto& step) { return step.second.infrastructure; });
  return by_infrastructure ? kExitInfrastructure : exit_code(view.outcome);
}

}  // namespace assay
