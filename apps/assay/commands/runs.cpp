// assay resume RUN, assay report RUN
#include <fmt/format.h>

#include "context.h"
#include "run_plan.h"

namespace assay {

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
      folder.run_resumed();
      run_in_folder(context, folder, {.retry_failed = options->retry_failed});
    }
    context.exit_code = report_run(context, folder.path());
  });
}

void add_report_command(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("report", "Show the verdicts of a run and write its reports again");
  command->footer(
      "Examples:\n  assay report last\n  assay report last --json\n\n"
      "Writes result.json, junit.xml, report.md and report.html into the run folder.");
  auto run = std::make_shared<std::string>();
  command->add_option("run", *run, "Run folder, its name, the beginning of its name, or 'last'")->required();
  command->callback([run, &context] { context.exit_code = report_run(context, find_run(context.runs, *run)); });
}

}  // namespace assay
