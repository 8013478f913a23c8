// One step in progress: begun, looked at, ended. Knows one step, and nothing of the others.
#pragma once

#include <future>
#include <memory>
#include <optional>

#include "base/console.h"
#include "execute/executor.h"
#include "execute/progress.h"
#include "execute/rank_output.h"
#include "launch/launcher.h"
#include "run/run_folder.h"

namespace assay {

// What a launcher is asked for, in the attempt that the run is in.
LaunchRequest launch_request(const RunFolder& run, const Step& step, const std::vector<NodePlace>& places,
                             const SiteSettings& site);

class StepTask {
 public:
  struct Services {
    RunFolder& run;
    Launcher& launcher;
    Console& console;
    const ExecuteOptions& options;
  };
  // `places`: of a step on hosts. Begins the step, or takes over what an earlier controller began in the same places.
  StepTask(const Services& services, const Step& step, std::vector<NodePlace> places, bool attach);

  const Step& step() const { return step_; }
  const std::vector<NodePlace>& places() const { return places_; }
  // Looks, for at most so long; the end of the step, or nullopt while it goes on. Begins it again where it may.
  std::optional<StepState> poll(double seconds, bool shows_progress);
  // Ends it before its time.
  void stop(double grace_seconds);

 private:
  void kill_leftovers();
  void prepare();
  void note_start();
  double seconds_before_attach() const;
  void restart_watch() {
    watch_.restart();
    before_watch_s_ = 0;
  }
  LaunchRequest request() const { return launch_request(services_.run, step_, places_, services_.options.site); }
  void launch();
  std::optional<StepState> wait_for_start(double seconds);
  std::optional<StepState> poll_running(double seconds, bool shows_progress);
  std::optional<StepState> ended(LaunchResult result);
  std::optional<StepState> failed(const std::string& reason);
  StepState verify();
  StepState conclude(const LaunchResult& result, const std::string& reason);
  bool may_restart(const LaunchResult& result) const;
  bool is_silent();
  std::string why(const LaunchResult& result) const;
  void write_disturbance() const;
  const StepState& state() const { return services_.run.state().steps.at(step_.name); }

  Services services_;
  const Step& step_;
  std::filesystem::path folder_;
  std::vector<NodePlace> places_;
  std::unique_ptr<RunningStep> running_;
  // Reaching hosts takes its time, and other steps go on meanwhile.
  std::future<std::unique_ptr<RunningStep>> starting_;
  std::optional<RankOutput> output_;
  std::optional<StepProgress> progress_;
  std::optional<StepState> early_end_;  // it could not be begun
  Stopwatch watch_;
  double before_watch_s_ = 0;  // what it ran under an earlier controller
  Stopwatch since_news_;
  std::optional<Stopwatch> pause_;  // between a failure of the infrastructure and the next attempt
  int64_t bytes_ = -1;
  int64_t first_records_ = 0;  // bytes of records when this attempt began
};

}  // namespace assay
