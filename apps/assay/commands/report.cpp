// assay report RUN: the verdicts of a run, and its reports again.
#include <fmt/format.h>

#include <memory>

#include "base/text.h"
#include "command.h"
#include "config/case.h"
#include "report/build_view.h"
#include "report/case_result.h"
#include "report/format.h"
#include "run_names.h"
#include "run_plan.h"

namespace assay {

namespace {

struct ReportOptions {
  std::string run;
  bool to_case = false;
  std::string format;
};

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

Command report_command() {
  auto options = std::make_shared<ReportOptions>();
  return {.name = "report",
          .summary = "Show the verdicts of a run and write its reports again",
          .examples =
              "  assay report last\n  assay report last --json\n  assay report last --format markdown\n  assay report "
              "last --to-case",
          .notes = "Writes result.json, junit.xml, report.md and report.html into the run folder.",
          .options = {{.names = "run", .value = &options->run, .help = kRunHelp, .required = true},
                      {.names = "--format",
                       .value = &options->format,
                       .help = fmt::format("What is printed: {}; --json is short for --format json",
                                           join(report_format_names(), ", "))},
                      {.names = "--to-case",
                       .value = &options->to_case,
                       .help = "Also store the result with its case, and in the case's README.md"}},
          .run =
              [options](Context& context) {
                const std::filesystem::path run = find_run(context.runs, options->run);
                if (options->to_case) store_with_case(context, run);
                context.exit_code = report_run(context, run, options->format);
              },
          .complete = run_names};
}

}  // namespace assay
