// What one run says about its case, in few figures: what `assay cases` shows of the last run, and what the table in the
// README of a case is made from. Of a case's folder it knows results.json and the lines between two marks of README.md.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/run_view.h"

namespace assay {

struct CaseResult {
  std::string case_name = {};           // "resnet-50"
  std::string run = {};                 // name of the run folder
  int64_t started_us = 0;               // of the run
  std::optional<Outcome> outcome = {};  // of the run; none while it has no end
  std::string metric = {};              // "accuracy"; empty when nothing was measured
  std::optional<double> value = {};     // of the metric, at the end of the training
  Json target = {};                     // {metric, value, goal}; null when unknown
  std::optional<bool> reached = {};     // the target
  std::optional<double> seconds = {};   // of the training, with start and evaluations
  std::optional<double> speed = {};     // of the training, in `unit`
  std::string unit = {};                // "images/s"
  std::optional<int64_t> seed = {};
  std::string machine = {};  // processor and cores
  std::string commit = {};   // of the program
  std::string hash = {};     // of the case as it ran
};

// From the step that trained, or else from the first with a result. nullopt when the run is of no case.
std::optional<CaseResult> case_result_of(const std::string& case_name, const RunView& run);

// The newest run of each case in the folder of runs, by the name of the case. A run that is damaged is passed over:
// `assay report` tells about it.
std::map<std::string, CaseResult> last_results(const std::filesystem::path& runs);

Json to_json(const CaseResult& result);
CaseResult case_result_from(const Json& json, const std::string& where);  // throws DataError naming `where`

// results.json of a case's folder, sorted by case; none when there is no such file. Throws DataError.
std::vector<CaseResult> read_case_results(const std::filesystem::path& case_folder);
// The table of README.md, between its two marks.
std::string results_table(const std::vector<CaseResult>& results);
// Puts the result into results.json, in place of an older one of the same case, and the table into README.md. Throws
// DataError when README.md has no marks.
void store_case_result(const std::filesystem::path& case_folder, const CaseResult& result);

inline constexpr char kResultsBegin[] = "<!-- results: written by assay report RUN --to-case -->\n";
inline constexpr char kResultsEnd[] = "<!-- end of results -->\n";
// README.md with another table. Throws DataError naming `where` when a mark is missing.
std::string with_results_table(const std::string& readme, const std::string& table, const std::string& where);

}  // namespace assay
