// From a plan to the questions for its hosts: what its steps need, asked of every host by its launcher, before anything
// starts and again before a run is resumed.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/console.h"
#include "base/json.h"
#include "execute/executor.h"
#include "plan/planned_run.h"
#include "preflight/preflight.h"
#include "run/run_folder.h"

namespace assay {

// Of a run that is resumed: its own locks and ports do not count as problems.
struct OwnRun {
  std::filesystem::path folder = {};   // empty: a new run
  std::set<std::string> running = {};  // steps of it that run: they have what they need
};

// What the hosts of the plan's site must have.
PreflightNeeds needs_of(const PlannedRun& planned, const OwnRun& own = {});

// All problems, on this host and on those of the plan's site; warnings go to the console. Throws InfrastructureError
// with all of them, and what planned.check_here throws. Returns the versions that hosts told: {host: {name: text}}.
// `runs`: the folder that run folders go to.
Json check_planned_run(const PlannedRun& planned, const std::filesystem::path& runs, Console& console,
                       const OwnRun& own = {});

// The same before a run is resumed, for the steps that have not started: what runs keeps its leases meanwhile. Says so
// where the run folder has no preflight.json.
void check_resumed_run(const RunFolder& folder, const ExecuteOptions& options, Console& console);

}  // namespace assay
