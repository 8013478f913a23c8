// From a run folder to results. The run folder is the truth; everything here is read from it and can be read again.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "layout/run_layout.h"
#include "record/record.h"
#include "results/result.h"
#include "run/evidence.h"

namespace assay {

// In the run folder: what hosts told before a campaign about the versions that its cases ask for, {host: {name: text}}.
inline constexpr const char* kVersionsFile = layout::kVersions;

// Whether the step is a measurement of a case: one of a campaign, or the only training of a run. Several trainings
// without cases of their own (`assay verify parallel`) are compared with each other, and are no repeats.
bool measures_case(const Plan& plan, const Step& step);

// The result of a step that has ended, from its records; nullopt when there is none: it has not ended, was skipped, or
// neither measures a case nor reported anything. `environment` is that of the run.
std::optional<Result> collect_result(const RunRecord& run, const Step& step, const Json& environment,
                                     const std::vector<std::vector<Record>>& ranks);

// The measurements of a run. Records that cannot be read leave a warning in the result, since the rest is known all
// the same.
std::vector<Result> collect_results(const RunRecord& run);
std::vector<Result> collect_results(const std::filesystem::path& run_folder);  // throws DataError

}  // namespace assay
