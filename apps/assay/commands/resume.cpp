// assay resume RUN: finishes a run.
#include <memory>

#include "command.h"
#include "preflight/site_check.h"
#include "run_names.h"
#include "run_plan.h"

namespace assay {

namespace {

struct ResumeOptions {
  std::string run;
  bool retry_failed = false;
};

void resume_run(const ResumeOptions& options, Context& context) {
  RunFolder folder = RunFolder::open(find_run(context.runs, options.run));
  const ExecuteOptions execution{.retry_failed = options.retry_failed};
  if (folder.state().outcome == Outcome::Pass) {
    context.console.info("this run has ended and passed; nothing to do");
  } else if (folder.state().outcome && !options.retry_failed) {
    context.console.info("this run has ended; --retry-failed repeats the steps that did not pass");
  } else {
    check_resumed_run(folder, execution, context.console);
    folder.run_resumed();
    run_in_folder(context, folder, execution);
  }
  context.exit_code = report_run(context, folder.path());
}

}  // namespace

Command resume_command() {
  auto options = std::make_shared<ResumeOptions>();
  return {.name = "resume",
          .summary = "Finish a run that was interrupted or killed; nothing finished is repeated",
          .examples = "  assay resume last\n  assay resume runs/20261115-194305-demo-1f3a --retry-failed",
          .options = {{.names = "run", .value = &options->run, .help = kRunHelp, .required = true},
                      {.names = "--retry-failed",
                       .value = &options->retry_failed,
                       .help = "Also repeat the steps that ended without passing"}},
          .run = [options](Context& context) { resume_run(*options, context); },
          .complete = run_names};
}

}  // namespace assay
