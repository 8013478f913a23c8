// assay table [RUN...]: the results of runs, one row per case, as FlagPerf publishes them.
#include <fmt/format.h>

#include "command.h"
#include "report/results_text.h"
#include "results/collect.h"
#include "run_names.h"

namespace assay {

namespace {

struct TableOptions {
  std::vector<std::string> runs;
  bool markdown = false;
};

constexpr const char* kTableExamples = R"(  assay table                         the last run
  assay table nightly-1 nightly-2     the rounds of both runs together
  assay table last --json             every figure with n, mean, standard deviation, interval, olympic mean
  assay table last > RESULTS.md)";

constexpr const char* kTableNotes =
    R"(Rounds that failed or were measured on a disturbed machine are not in the means; footnotes name them. docs/guide/results.md
has the formulas.)";

void show_table(const std::vector<std::string>& names, Context& context) {
  std::vector<Result> rows;
  Json runs = Json::array();
  for (const std::string& name : names) {
    const std::filesystem::path run = find_run(context.runs, name);
    runs.push_back(std::filesystem::absolute(run).lexically_normal().filename().string());
    for (Result& row : collect_results(run)) rows.push_back(std::move(row));
  }
  if (rows.empty()) throw InvalidError("no step of these runs has measured a case");
  const std::vector<CaseSummary> summaries = summarise(rows);
  if (!context.json) {
    context.console.print(markdown_results(summaries));
    return;
  }
  Json out = {{"schema", "assay/table-v1"}, {"runs", runs}, {"cases", Json::array()}, {"scaling", Json::array()}};
  for (const CaseSummary& summary : summaries) out["cases"].push_back(to_json(summary));
  for (const Scaling& scaling : scaling_of(summaries)) out["scaling"].push_back(to_json(scaling));
  context.console.print(to_pretty(out) + "\n");
}

}  // namespace

Command table_command() {
  auto options = std::make_shared<TableOptions>();
  return {.name = "table",
          .summary = "Results of runs as a Markdown table, one row per case, means over rounds",
          .examples = kTableExamples,
          .notes = kTableNotes,
          .options = {{.names = "RUN",
                       .value = &options->runs,
                       .help = "Run folders, their names, beginnings of their names, or 'last' (the default)"},
                      {.names = "--markdown",
                       .value = &options->markdown,
                       .help = "As Markdown, which is the default; --json is the other form"}},
          .run =
              [options](Context& context) {
                if (options->markdown && context.json) throw UsageError("either --markdown or --json");
                show_table(options->runs.empty() ? std::vector<std::string>{"last"} : options->runs, context);
              },
          .complete = run_names};
}

}  // namespace assay
