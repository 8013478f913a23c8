// A job of Slurm while it waits, runs and ends, seen through the files of its supervisors and now and then Slurm
// itself.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/time.h"
#include "launch/failure_rule.h"
#include "launch/host/job_state.h"
#include "launch/host/lease_keeper.h"
#include "launch/launcher.h"
#include "launch/slurm/slurm_queue.h"

namespace assay {

class SlurmStep : public RunningStep {
 public:
  // `note` is the content of slurm.json, with the job's number.
  SlurmStep(LaunchRequest request, Json note);
  ~SlurmStep() override;

  std::optional<LaunchResult> wait_for(double seconds, int wake_fd) override;
  LaunchResult stop(double grace_seconds) override;
  std::string queued() override;
  void leave() override { is_left_ = true; }

 private:
  void look();  // once at everything
  void look_at_states();
  void note_failure(int node);
  void look_at_queue();
  void note_job(const SlurmQuestion::Answer& answer);
  void ask_soon() { next_question_ = 0; }
  void write_note(const std::string& state, const std::string& reason);

  bool begun() const;  // a node has said something
  bool all_ended() const;
  bool any_ended_by_signal() const;
  void ask_to_stop(double grace_seconds);
  std::optional<LaunchResult> finished();
  LaunchResult combine() const;
  LaunchResult conclude(LaunchResult result);
  std::string node_name(int node) const;
  std::string job_log_tail() const;
  std::string why_slurm_ended_it() const;  // "" when it did not

  LaunchRequest request_;
  std::unique_ptr<LeaseKeeper> keeper_;  // also while it waits in the queue
  Json note_;
  std::string job_id_;
  std::vector<std::optional<JobState>> states_;
  FailureRule rule_;  // of the nodes that failed

  std::optional<SlurmJob> job_;  // as last heard
  bool gone_ = false;            // Slurm does not know the job any more
  int hopeless_answers_ = 0;
  std::optional<Stopwatch> job_ended_;
  std::unique_ptr<SlurmQuestion> question_;
  Stopwatch watch_;
  double next_question_ = 0, next_states_ = 0;
  double question_interval_;
  std::optional<Stopwatch> stopping_;
  double stop_grace_ = 0, next_stop_ = 0;
  bool stop_requested_ = false, cancelled_by_us_ = false;
  std::optional<Stopwatch> all_ended_;
  std::optional<LaunchResult> result_;
  bool is_left_ = false;
};

}  // namespace assay
