// Runs a plan: each step once, in order, journalled. Knows steps; knows nothing of dialects or of what the records mean
// beyond showing progress.
#pragma once

#include "base/console.h"
#include "execute/run_folder.h"
#include "launch/launcher.h"

namespace assay {

struct ExecuteOptions {
  bool retry_failed = false;       // also repeat steps that ended without passing
  double stop_grace_seconds = 15;  // what a step gets to end cleanly after Ctrl-C or at its time limit
};

// Runs what is not finished yet. Returns the outcome of the steps, having written it to the journal; a plan without
// steps is Invalid. Throws InterruptedError when a stop signal came (base/signals.h): the run can be resumed.
Outcome execute(RunFolder& run, Launcher& launcher, Console& console, const ExecuteOptions& options = {});

}  // namespace assay
