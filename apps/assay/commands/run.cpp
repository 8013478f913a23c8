// assay run FILE: whatever a front-end recognises.
#include <fmt/format.h>

#include "base/text.h"
#include "command.h"
#include "frontends/front_end.h"
#include "layout/run_layout.h"
#include "preflight/preflight_file.h"
#include "preflight/site_check.h"
#include "run_plan.h"

namespace assay {

namespace {

struct RunOptions {
  std::string file;
  bool dry_run = false;
  bool preflight_only = false;
};

// What a resume and the results want to know of a run on hosts.
std::map<std::string, Json> files_of(const PlannedRun& planned, const Json& versions) {
  if (!planned.plan.site) return {};
  return {{layout::kVersions, versions}, {layout::kPreflight, preflight_json(planned)}};
}

void run_file(const RunOptions& options, Context& context) {
  const PlannedRun planned = front_end_for(options.file).plan(options.file, {.home = context.home});
  if (options.dry_run) {
    show_plan(context, planned.plan);
    return;
  }
  const Json versions = check_planned_run(planned, context.runs, context.console);
  if (options.preflight_only) {
    context.console.info("preflight passed");
    return;
  }
  RunFolder folder =
      RunFolder::create(context.runs, planned.plan, context.command, planned.code, files_of(planned, versions));
  announce_run(context, folder);
  run_in_folder(context, folder);
  context.exit_code = report_run(context, folder.path());
}

}  // namespace

Command run_command() {
  auto options = std::make_shared<RunOptions>();
  std::string files;
  for (const FrontEnd& front_end : front_ends()) files += "  " + front_end.files + "\n";
  return {
      .name = "run",
      .summary = "Run a file: a campaign of cases, rounds and hosts, or a case",
      .examples =
          "  assay run campaign.yaml --dry-run      the plan, and nothing else\n"
          "  assay run campaign.yaml --check        preflight: all problems, on all hosts at once; starts nothing\n"
          "  assay run campaign.yaml                then: assay ps, assay logs last -f, assay stop last, assay table "
          "last\n"
          "  assay run cases/simplenet/case.yaml    train a case",
      .notes = fmt::format(
          "Files that it recognises:\n{}\n"
          "Ctrl-C stops cleanly; assay resume continues, also after a crash.\n"
          "Exit codes: 0 all passed, 1 a verdict failed or a case broke, 2 the file is wrong, 4 a host, port or disk.",
          files),
      .options =
          {{.names = "file", .value = &options->file, .help = "campaign.yaml, or another file", .required = true},
           {.names = "--dry-run", .value = &options->dry_run, .help = "Print the plan, run nothing"},
           {.names = "--check", .value = &options->preflight_only, .help = "Only the checks before a run"}},
      .run = [options](Context& context) { run_file(*options, context); }};
}

}  // namespace assay
