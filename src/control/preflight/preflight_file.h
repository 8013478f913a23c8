// preflight.json of a run folder: what the hosts of a campaign must have beyond what its plan says, so that
// `assay resume` can look at them again before it begins anything.
#pragma once

#include <set>
#include <string>

#include "plan/planned_run.h"

namespace assay {

// {"schema", "hardware", "data": {folder: {file: SHA-256}}, "versions": {name: command}, "uses": {step: {"data",
// "versions"}}}
Json preflight_json(const PlannedRun& plan);
// The campaign as it was planned, without its code. Throws DataError beginning with `where`.
PlannedRun planned_run_of(Plan plan, const Json& preflight, const std::string& where);

// What is left of it: of the steps only those that are to be begun, or that run; of the rest what the former use.
PlannedRun rest_of(const PlannedRun& whole, const std::set<std::string>& to_begin,
                   const std::set<std::string>& running);

}  // namespace assay
