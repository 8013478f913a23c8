// The folder of one run: plan, journal, environment, one folder per step (layout/run_layout.h has all names).
// Everything in it is written so that a kill at any byte leaves it readable; the state of a run is what its journal
// says, and nothing else.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/journal.h"
#include "plan/plan.h"
#include "verify/verdict.h"

namespace assay {

struct StepState {
  int attempts = 0;
  std::optional<int64_t> started_us;  // the last attempt
  bool running = false;               // started, and no end was written: it runs now, or the controller was killed
  // Its controller has stopped it, and then itself: nothing of that attempt runs, and it is begun again.
  bool stopped = false;
  // Why its ranks were started again, each time, since it last had no end: also by controllers that were killed.
  std::vector<std::string> restarts;
  // Of the last attempt that ended.
  std::optional<Outcome> outcome;
  std::string reason;
  std::optional<double> seconds;
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::optional<int> rank;      // that decided, where it failed
  bool infrastructure = false;  // not a rank failed but a host, a connection, a port
  // Of a step on hosts: where its last attempt runs or ran, as host_pool.h writes it; null: nowhere yet.
  Json places = nullptr;
  // Of a step on hosts: how long the log that records are found in was when the last attempt began.
  int64_t log_bytes = 0;
  // Why it was begun again, each time, since it last had no end: failures of the infrastructure.
  std::vector<std::string> retries;
  std::optional<int64_t> max_rss_bytes;
  std::vector<std::string> remarks;  // what a reader should know of its end, passed or not
};

// "restarted 1 time: rank 2: killed by signal 9 (Killed)"; "" without restarts.
std::string restarts_text(const std::vector<std::string>& reasons);

struct RunState {
  int64_t started_us = 0;
  std::optional<int64_t> ended_us;
  std::optional<Outcome> outcome;    // set once the run has ended
  std::vector<std::string> command;  // as typed
  std::string title;
  size_t num_steps = 0;
  std::map<std::string, StepState> steps;
};

class RunFolder {
 public:
  // Makes a new folder under `runs` and writes plan, environment and the first journal line. The plan is validated.
  // `copies`: files and folders that are to lie in it, path there -> here; `files`: what is written into it, by name.
  static RunFolder create(const std::filesystem::path& runs, const Plan& plan, const std::vector<std::string>& command,
                          const std::map<std::string, std::filesystem::path>& copies = {},
                          const std::map<std::string, Json>& files = {});
  // Opens an existing one for continuing. Throws DataError (not a run, damaged), InfrastructureError (in use).
  static RunFolder open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::string id() const { return path_.filename().string(); }
  const Plan& plan() const { return plan_; }
  const RunState& state() const { return state_; }
  // Of a step of plan(), not of a copy.
  std::filesystem::path step_folder(const Step& step) const;
  // Everything that a step starts carries this mark, over attempts and controllers.
  std::string tree_mark(const Step& step) const;

  // `log_bytes`: of a step on hosts, see StepState.
  void step_started(const Step& step, const Json& places = nullptr, int64_t log_bytes = 0);
  void step_retried(const Step& step, const std::string& reason);
  void step_restarted(const Step& step, const std::string& reason);
  void step_ended(const Step& step, const StepState& end);
  void run_interrupted();
  void run_ended(Outcome outcome);
  void run_resumed();

 private:
  RunFolder(std::filesystem::path path, Plan plan);
  void write(Json line);

  std::filesystem::path path_;
  Plan plan_;
  RunState state_;
  FileDescriptor lock_;  // held as long as this controller lives
  std::optional<Journal> journal_;
};

// Plan and state of a run, without taking it over: for reports, also while it runs.
struct RunRecord {
  std::filesystem::path path;
  Plan plan;
  RunState state;
};
RunRecord read_run(const std::filesystem::path& path);
// The state alone, from the journal: quick, however large the plan is.
RunState read_run_state(const std::filesystem::path& path);
// The controller that works on the run now; nullopt: none.
std::optional<int> controller_of(const std::filesystem::path& path);
// Folders of runs, oldest first.
std::vector<std::filesystem::path> list_runs(const std::filesystem::path& runs);

// A run by its folder, its name under `runs`, an unambiguous beginning of its name, or "last". Throws UsageError.
std::filesystem::path find_run(const std::filesystem::path& runs, const std::string& name);

}  // namespace assay
