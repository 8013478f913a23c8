// assay diff BASELINE RUN: what became better or worse, as far as the rounds can tell.
#include <fmt/format.h>

#include "command.h"
#include "output_width.h"
#include "report/results_text.h"
#include "results/collect.h"
#include "results/store.h"
#include "run/run_folder.h"
#include "run_names.h"

namespace assay {

namespace {

constexpr const char* kDiffExamples =
    R"(  assay diff runs/20261115-... last                 the second run against the first
  assay diff last                                   the last run against the history of its cases on this system
  assay diff base last --thresholds thresholds.yaml for CI: how much worse each figure may become)";

constexpr const char* kDiffNotes =
    R"(Answers: faster, slower (better, worse) when Welch's t test shows it at 95 %; "no difference shown" when the difference is
shown to be smaller than the threshold; "inconclusive" when the rounds cannot tell. Fewer than three rounds on a side are
always inconclusive. g is Hedges' effect size. Without a file the threshold is 5 % for every figure.

Exit codes: 0 no regression beyond its threshold, 1 a regression or a case that no longer passes, 3 nothing could be
compared.)";

constexpr size_t kHistoryRounds = 30;

struct DiffOptions {
  std::vector<std::string> runs;
  std::string thresholds;
};

std::string run_name(const std::filesystem::path& run) {
  return std::filesystem::absolute(run).lexically_normal().filename().string();
}

// Good rounds of the same cases, systems and configurations in earlier runs.
std::vector<Result> earlier_results(const std::filesystem::path& run, const std::vector<Result>& measured) {
  const auto runs = std::filesystem::absolute(run).lexically_normal().parent_path();
  std::error_code ignored;
  if (!std::filesystem::exists(runs / kStoreFile, ignored)) rebuild_results(runs);
  ResultStore store(runs);
  std::vector<Result> out;
  for (const CaseSummary& summary : summarise(measured)) {
    const std::vector<std::string> hashes = summary.config_hashes();
    for (Result& row : store.history({.case_name = summary.case_key,
                       .system = summary.system,
                       .except_run = run_name(run),
                       .before_us = summary.rounds.front().started_us,
                       .good_only = true,
                       .limit = kHistoryRounds})) {
      const bool same = row.config_hash().empty() || hashes.empty() ||
                        std::find(hashes.begin(), hashes.end(), row.config_hash()) != hashes.end();
      if (row.case_key == summary.case_key && same) out.push_back(std::move(row));
    }
  }
  return out;
}

void show_diff(const DiffOptions& options, Context& context) {
  if (options.runs.size() > 2) throw UsageError("assay diff takes one or two runs");
  const Thresholds thresholds = options.thresholds.empty() ? Thresholds() : Thresholds::read(options.thresholds);
  const std::filesystem::path run = find_run(context.runs, options.runs.back());
  const std::vector<Result> measured = collect_results(run);
  std::vector<Result> baseline;
  std::string baseline_name = "history";
  if (options.runs.size() == 2) {
    const std::filesystem::path first = find_run(context.runs, options.runs.front());
    baseline_name = run_name(first);
    if (std::filesystem::equivalent(first, run)) throw UsageError("these are the same run");
    baseline = collect_results(first);
  } else {
    baseline = earlier_results(run, measured);
  }
  const RunComparison comparison = compare_results(baseline, measured, thresholds);
  context.exit_code = comparison.exit_code();
  if (context.json) {
    Json out = to_json(comparison);
    out["baseline"] = baseline_name;
    out["measured"] = run_name(run);
    out["exit_code"] = comparison.exit_code();
    context.console.print(to_pretty(out) + "\n");
    return;
  }
  context.console.info(fmt::format("baseline {}, measured {}", baseline_name, run_name(run)));
  context.console.print(diff_text(comparison, {.colours = colours_on(stdout), .width = 0}));
}

}  // namespace

Command diff_command() {
  auto options = std::make_shared<DiffOptions>();
  return {.name = "diff",
          .summary = "Compare the results of two runs, or of a run with its history",
          .examples = kDiffExamples,
          .notes = kDiffNotes,
          .options = {{.names = "RUN",
                       .value = &options->runs,
                       .help = "Baseline and run; a single one is compared with the history",
                       .required = true,
                       .most = 2},
                      {.names = "--thresholds",
                       .value = &options->thresholds,
                       .help = "YAML: system -> figure -> percent it may become worse"}},
          .run = [options](Context& context) { show_diff(*options, context); },
          .complete = run_names};
}

}  // namespace assay
