#include "run_plan.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"
#include "launch/local.h"
#include "report/build_view.h"
#include "report/result_json.h"
#include "report/terminal.h"
#include "report/write_reports.h"

namespace assay {

namespace {

std::string shown_path(const std::filesystem::path& path) {
  const auto relative = path.lexically_proximate(std::filesystem::current_path());
  return relative.string().rfind("..", 0) == 0 ? path.string() : relative.string();
}

size_t output_width() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 120;
}

}  // namespace

void show_plan(Context& context, const Plan& plan) {
  plan.validate();
  context.console.print(context.json ? to_pretty(to_json(plan)) + "\n" : plan_text(plan));
}

void run_in_folder(Context& context, RunFolder& folder, const ExecuteOptions& options) {
  LocalLauncher launcher;
  try {
    execute(folder, launcher, context.console, options);
  } catch (const InterruptedError&) {
    context.console.info(
        fmt::format("interrupted; continue with: assay resume {}", shell_quote(shown_path(folder.path()))));
    throw;
  }
}

RunFolder run_plan(Context& context, const Plan& plan) {
  RunFolder folder = RunFolder::create(context.runs, plan, context.command);
  context.console.info(fmt::format("{}  ({})", plan.title, shown_path(folder.path())));
  run_in_folder(context, folder);
  return folder;
}

int report_run(Context& context, const std::filesystem::path& run_folder) {
  const RunView view = build_view(run_folder);
  write_reports(view, run_folder);
  if (context.json) {
    context.console.print(to_pretty(render_result_json(view)) + "\n");
  } else {
    context.console.print(render_terminal(view, colours_on(stdout), output_width()));
    context.console.print(fmt::format("report: {}\n", shown_path(run_folder / "report.html")));
  }
  return exit_code(view.outcome);
}

}  // namespace assay
