// assay history CASE: what every run has measured of a case.
#include <fmt/format.h>

#include "base/text.h"
#include "base/time.h"
#include "command.h"
#include "output_width.h"
#include "report/results_text.h"
#include "results/store.h"

namespace assay {

namespace {

constexpr const char* kHistoryExamples =
    R"(  assay history                                    the cases that have results
  assay history resnet                             every key of the model
  assay history simplenet:libtorch:cpu:1:2:3 --limit 10
  assay history --rebuild                          read all run folders again)";

constexpr const char* kHistoryNotes =
    R"(Results are stored in results.sqlite in the folder of runs after every run; the run folders stay the truth, and the file
can be deleted or made again at any time.)";

struct HistoryOptions {
  std::string case_name;
  size_t limit = 0;
  bool rebuild = false;
};

void rebuild_store(Context& context) {
  const Rebuilt done = rebuild_results(context.runs);
  for (const std::string& problem : done.problems) context.console.warn(problem);
  if (!done.set_aside.empty()) context.console.warn(fmt::format("the damaged file is now {}", done.set_aside));
  context.console.info(
      fmt::format("{}: {} results of {} runs", (context.runs / kStoreFile).string(), done.num_rows, done.num_runs));
}

void list_stored_cases(ResultStore& store, Context& context) {
  Table table({{"case"}, {"rounds", Table::Align::Right}, {"last"}, {"outcome"}});
  Json list = Json::array();
  for (const std::string& name : store.cases()) {
    std::vector<Result> rows = store.history({.case_name = name});
    std::erase_if(rows, [&](const Result& row) { return row.case_key != name; });
    const Result& last = rows.back();
    list.push_back({{"case", name},
                    {"rounds", rows.size()},
                    {"last", utc_text(last.started_us)},
                    {"outcome", outcome_name(last.outcome)}});
    table.add({name, fmt::to_string(rows.size()), utc_text(last.started_us).substr(0, 19),
               std::string(outcome_name(last.outcome))});
  }
  if (list.empty()) throw InvalidError(fmt::format("no results in {}", context.runs.string()));
  context.console.print(context.json ? to_pretty(list) + "\n"
                                     : table.text({.colours = colours_on(stdout), .width = output_width()}));
}

// A full key, its model, or anything between that someone may have meant.
std::vector<std::string> known_names(ResultStore& store) {
  std::vector<std::string> names = store.cases();
  for (const std::string& key : store.cases()) {
    const std::string model = key.substr(0, key.find(':'));
    if (std::find(names.begin(), names.end(), model) == names.end()) names.push_back(model);
  }
  return names;
}

void show_history(const HistoryOptions& options, Context& context) {
  std::error_code ignored;
  const bool missing = !std::filesystem::exists(context.runs / kStoreFile, ignored);
  if (missing && !std::filesystem::is_directory(context.runs, ignored)) {
    throw UsageError(fmt::format("no folder of runs {}; name it with --runs", context.runs.string()));
  }
  if (options.rebuild || missing) rebuild_store(context);
  if (options.rebuild && options.case_name.empty()) return;
  ResultStore store(context.runs);
  if (options.case_name.empty()) return list_stored_cases(store, context);
  const std::vector<Result> rows = store.history({.case_name = options.case_name, .limit = options.limit});
  if (rows.empty()) {
    throw UsageError(fmt::format("no result of case '{}' in {}{}; assay history lists them", options.case_name,
                                 context.runs.string(), did_you_mean(options.case_name, known_names(store))));
  }
  if (!context.json) {
    context.console.print(history_text(rows, {.colours = colours_on(stdout), .width = output_width()}));
    return;
  }
  Json out = {{"schema", "assay/history-v1"}, {"results", Json::array()}, {"summaries", Json::array()}};
  for (const Result& row : rows) {
    Json one = to_json(row);
    one["environment"] = store.environment_of(row.run, row.step);
    out["results"].push_back(std::move(one));
  }
  for (const CaseSummary& summary : summarise(rows)) out["summaries"].push_back(to_json(summary));
  context.console.print(to_pretty(out) + "\n");
}

// For the completion; asking must not make the file.
std::vector<std::string> stored_cases(const Context& context) {
  std::error_code ignored;
  if (!std::filesystem::exists(context.runs / kStoreFile, ignored)) return {};
  return ResultStore(context.runs).cases();
}

}  // namespace

Command history_command() {
  auto options = std::make_shared<HistoryOptions>();
  return {
      .name = "history",
      .summary = "What all runs have measured of a case, from the store of results",
      .examples = kHistoryExamples,
      .notes = kHistoryNotes,
      .options = {{.names = "CASE",
                   .value = &options->case_name,
                   .help = "Case key, or its first parts, such as the model"},
                  {.names = "--limit", .value = &options->limit, .help = "Only the newest so many rounds", .min = 1},
                  {.names = "--rebuild",
                   .value = &options->rebuild,
                   .help = "Make the store again from all run folders first"}},
      .run = [options](Context& context) { show_history(*options, context); },
      .complete = stored_cases};
}

}  // namespace assay
