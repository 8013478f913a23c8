// assay resume RUN, assay report RUN
#include <fmt/format.h>

#include "campaign_site.h"
#include "config/case.h"
#include "context.h"
#include "report/build_view.h"
#include "report/case_result.h"
#include "run_plan.h"

namespace assay {

namespace {

// Puts the result of a run into the folder of its case, where README.md shows it.
void store_with_case(Context& context, const std::filesystem::path& run) {
  const std::string key = read_run(run).plan.case_key;
  if (key.empty()) throw UsageError(fmt::format("{}: this run is not of a case", run.string()));
  const ResolvedCase resolved = resolve_case({.home = context.home, .key = CaseKey::parse(key)});
  const CaseResult result = case_result_of(resolved.key.model, build_view(run)).value();
  if (result.outcome != Outcome::Pass || !result.reached.value_or(false)) {
    throw UsageError(
        fmt::format("{}: only a run that passed and reached its target is shown with its case", run.string()));
  }
  if (result.hash != resolved.hash()) {
    throw UsageError(
        fmt::format("{}: this run was not of {} as it is now: values were changed for it, or the case was "
                    "changed since",
                    run.string(), resolved.key.model));
  }
  const auto folder = find_case(context.home, resolved.key.model)->path.parent_path();
  store_case_result(folder, result);
  context.console.info(fmt::format("stored in {}", (folder / "README.md").string()));
}

}  // namespace

void add_resume_command(CLI::App& app, Context& context) {
  auto* command =
      app.add_subcommand("resume", "Finish a run that was interrupted or killed; nothing finished is repeated");
  command->footer("Examples:\n  assay resume last\n  assay resume runs/20261115-194305-demo-1f3a --retry-failed");
  struct Options {
    std::string run;
    bool retry_failed = false;
  };
  auto options = std::make_shared<Options>();
  command->add_option("run", options->run, "Run folder, its name, the beginning of its name, or 'last'")->required();
  command->add_flag("--retry-failed", options->retry_failed, "Also repeat the steps that ended without passing");
  command->callback([options, &context] {
    RunFolder folder = RunFolder::open(find_run(context.runs, options->run));
    if (folder.state().outcome == Outcome::Pass) {
      context.console.info("this run has ended and passed; nothing to do");
    } else if (folder.state().outcome && !options->retry_failed) {
      context.console.info("this run has ended; --retry-failed repeats the steps that did not pass");
    } else {
      check_site_again(context, folder, {.retry_failed = options->retry_failed});
      folder.run_resumed();
      run_in_folder(context, folder, {.retry_failed = options->retry_failed});
    }
    context.exit_code = report_run(context, folder.path());
  });
}

void add_report_command(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("report", "Show the verdicts of a run and write its reports again");
  command->footer(
      "Examples:\n  assay report last\n  assay report last --json\n  assay report last --to-case\n\n"
      "Writes result.json, junit.xml, report.md and report.html into the run folder.");
  struct Options {
    std::string run;
    bool to_case = false;
  };
  auto options = std::make_shared<Options>();
  command->add_option("run", options->run, "Run folder, its name, the beginning of its name, or 'last'")->required();
  command->add_flag("--to-case", options->to_case, "Also store the result with its case, and in the case's README.md");
  command->callback([options, &context] {
    const std::filesystem::path run = find_run(context.runs, options->run);
    if (options->to_case) store_with_case(context, run);
    context.exit_code = report_run(context, run);
  });
}

}  // namespace assay
