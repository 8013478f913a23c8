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
#include "execute/run_folder.h"
#include "launch/launcher.h"

namespace assay {

// What steps on hosts need besides the plan.
struct SiteOptions {
  std::string visible_devices = {};
  double lease_s = 60;
  double monitor_interval_s = 0;
  std::vector<std::string> monitor_command = {};
  bool clear_caches = false;
  std::vector<std::string> setup = {};  // brought along by every job: launch/host_setup.h
  std::map<std::string, std::string> setup_env = {};
};

struct ExecuteOptions {
  bool retry_failed = false;       // also repeat steps that ended without passing
  double stop_grace_seconds = 15;  // what a step gets to end cleanly after Ctrl-C or at its time limit
  int concurrency = 1;             // steps at a time
  int max_failures = 0;            // steps that did not pass, after which no other is begun; 0: no limit
  HostPool* hosts = nullptr;       // for steps on hosts
  SiteOptions site = {};
};

// Runs what is not finished yet. Returns the outcome of the steps, having written it to the journal; a plan without
// steps is Invalid. Throws InterruptedError when a stop signal came (base/signals.h): the run can be resumed.
Outcome execute(RunFolder& run, Launcher& launcher, Console& console, const ExecuteOptions& options = {});

// Of a run whose controller is gone: ends the steps on hosts that it left running, and returns how many there were.
size_t stop_left_behind(RunFolder& run, Launcher& launcher, const ExecuteOptions& options);

}  // namespace assay
