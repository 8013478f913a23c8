// Runs a plan: each step once, journalled, beside each other where there is room. Knows steps; knows nothing of
// dialects or of what the records mean beyond showing progress.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/console.h"
#include "execute/host_pool.h"
#include "launch/launcher.h"
#include "run/run_folder.h"

namespace assay {

struct ExecuteOptions {
  bool retry_failed = false;       // also repeat steps that ended without passing
  double stop_grace_seconds = 15;  // what a step gets to end cleanly after Ctrl-C or at its time limit
  int concurrency = 1;             // steps at a time
  int max_failures = 0;            // steps that did not pass, after which no other is begun; 0: no limit
  HostPool* hosts = nullptr;       // for steps on hosts
  SiteSettings site = {};          // of steps on hosts
};

// Runs what is not finished yet. Returns the outcome of the steps, having written it to the journal; a plan without
// steps is Invalid. Throws InterruptedError when a stop signal came (base/signals.h): the run can be resumed.
Outcome execute(RunFolder& run, Launcher& launcher, Console& console, const ExecuteOptions& options = {});

// What a run that is resumed has to do, and what an earlier controller left running of it. As long as this exists it
// keeps the leases of what runs; destroyed, it lets go of it, and execute() takes it over. Writes nothing into the
// journal.
class ResumableSteps {
 public:
  // What cannot be reached counts as not running.
  ResumableSteps(const RunFolder& run, Launcher& launcher, const ExecuteOptions& options);
  ~ResumableSteps();
  ResumableSteps(const ResumableSteps&) = delete;
  ResumableSteps& operator=(const ResumableSteps&) = delete;

  // Names of the steps on hosts that are yet to be begun, or to be begun again.
  const std::set<std::string>& to_begin() const { return to_begin_; }
  // Names of those that run, or have ended with a result that nobody has noted yet.
  std::set<std::string> running() const;

 private:
  std::set<std::string> to_begin_;
  std::map<std::string, std::unique_ptr<RunningStep>> held_;
};

// Of a run whose controller is gone: ends the steps on hosts that it left running, and returns how many there were.
size_t stop_orphans(RunFolder& run, Launcher& launcher, const ExecuteOptions& options);

}  // namespace assay
