#include "run_plan.h"

#include <fmt/format.h>

#include "base/text.h"
#include "campaign_site.h"
#include "launch/local.h"
#include "output_width.h"
#include "report/build_view.h"
#include "report/result_json.h"
#include "report/terminal.h"
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
    if (folder.plan().campaign.is_null()) {
      LocalLauncher launcher;
      execute(folder, launcher, context.console, options);
    } else {
      stage_data(context, folder.plan());
      const CampaignServices services = campaign_services(folder.plan(), options);
      execute(folder, *services.launcher, context.console, services.options);
    }
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

int report_run(Context& context, const std::filesystem::path& run_folder) {
  const RunView view = build_view(run_folder);
  write_reports(view, run_folder);
  store_or_warn(context, run_folder);
  if (context.json) {
    context.console.print(to_pretty(render_result_json(view)) + "\n");
  } else {
    context.console.print(render_terminal(view, colours_on(stdout), output_width()));
    context.console.print(fmt::format("report: {}\n", shown_path(run_folder / "report.html")));
  }
  // A machine that failed is another answer than a case that did.
  const RunState state = read_run_state(run_folder);
  const bool by_infrastructure =
      std::any_of(state.steps.begin(), state.steps.end(), [](const auto& step) { return step.second.infrastructure; });
  return by_infrastructure ? kExitInfrastructure : exit_code(view.outcome);
}

}  // namespace assay
