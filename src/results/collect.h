// From a run folder to results. The run folder is the truth; everything here is read from it and can be read again.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "execute/run_folder.h"
#include "record/record.h"
#include "results/result_row.h"

namespace assay {

// In the run folder: what hosts told before a campaign about the versions that its cases ask for, {host: {name: text}}.
inline constexpr const char* kVersionsFile = "versions.json";

// The records of a step, one list a rank. Throws DataError when a file is damaged.
std::vector<std::vector<Record>> step_records(const RunRecord& run, const Step& step);

// What a program reported of itself: the last of its result records, FINISHED events (FlagPerf) and run summaries
// (DLLogger), put together.
struct Report {
  Figures figures;
  std::string case_name;  // that a result record names
  Json data;              // of the last result record, as it is; null: there was none
  Json target;
  Json hashes = Json::object();
  bool found = false;
};
Report reported(const std::vector<Record>& records);

// Of the first rank that reported something.
Report reported(const std::vector<std::vector<Record>>& ranks);

// Whether the step is a measurement of a case: one of a campaign, or the only training of a run. Several trainings
// without cases of their own (`assay verify parallel`) are compared with each other, and are no repeats.
bool measures_case(const Plan& plan, const Step& step);

// The result of such a step that has ended; nullopt when it has not, was skipped, or measures no case. Records that
// cannot be read leave a warning in the row, since the rest is known all the same.
std::optional<ResultRow> result_row(const RunRecord& run, const Step& step, const Json& environment);
std::optional<ResultRow> result_row(const RunRecord& run, const Step& step, const Json& environment,
                                    const std::vector<std::vector<Record>>& ranks);

// All of a run.
std::vector<ResultRow> collect_results(const RunRecord& run);
std::vector<ResultRow> collect_results(const std::filesystem::path& run_folder);  // throws DataError

// What result.json says about a step: the report of its program in our names, with what the row knows besides. Null
// when nothing was measured.
Json result_object(const Report& report, const Step& step, const std::optional<ResultRow>& row);

}  // namespace assay
