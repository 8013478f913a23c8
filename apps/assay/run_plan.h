// From a plan to a verdict that a person has seen: run, report, exit code.
#pragma once

#include "context.h"
#include "execute/executor.h"
#include "plan/plan.h"

namespace assay {

// Prints the plan instead of running it.
void show_plan(Context& context, const Plan& plan);
// The title of a run and its folder.
void announce_run(Context& context, const RunFolder& folder);
// A new run of the plan. Returns its folder. Throws InterruptedError after telling how to resume.
RunFolder run_plan(Context& context, const Plan& plan);
// Continues or finishes a run.
void run_in_folder(Context& context, RunFolder& folder, const ExecuteOptions& options = {});
// Writes result.json, junit.xml, report.md, report.html, stores the results in results.sqlite and prints the report in
// a format of report/format.h; empty: tables for people, or result.json with --json. Returns the exit code that the
// outcome means.
int report_run(Context& context, const std::filesystem::path& run_folder, const std::string& format = "");

}  // namespace assay
