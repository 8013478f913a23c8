// What prepares a host before its first job of a run, where nobody knows the hosts before: Slurm gives each job its
// nodes. Every job brings the setup along, and whichever comes to a host first runs it there. In the folder `setup` of
// the run folder, which all hosts see, there are two files for each of them, with the host in their names:
//   <host>.lock  held while the setup runs, so that jobs that come at once wait for the one that runs it
//   <host>.done  the host is prepared; not there: nobody has tried, or it failed, and the next job tries
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/process.h"
#include "base/time.h"
#include "launch/launcher.h"

namespace assay {

// The setup of one node of a job, seen as a step that comes before its ranks. What it prints goes to setup.node<I>.log
// in the step's folder. It ends when all hosts of the job are prepared: ranks that wait for those of another host would
// give up before a long setup there has ended.
class HostSetup : public RunningStep {
 public:
  // Opens the lock and takes nothing yet: a process that is forked now keeps the lock that is taken later. Throws
  // InfrastructureError.
  explicit HostSetup(const LaunchRequest& job);
  ~HostSetup() override;
  // A result with `infrastructure` says why the setup failed, with its last lines. Throws InfrastructureError when it
  // cannot be started or its files cannot be written.
  std::optional<LaunchResult> wait_for(double seconds, int wake_fd) override;
  // The ranks never began: their status is the signal that ended the setup.
  LaunchResult stop(double grace_seconds) override;

 private:
  bool is_prepared(const std::string& host) const;
  bool all_are_prepared() const;
  void begin();  // takes the lock, and starts the setup unless another job has done it; nothing while that one does it
  void run_setup();
  std::optional<LaunchResult> note_end(const ExitStatus& status);
  void unlock();
  void say_that_it_waits();
  LaunchResult result_of(const ExitStatus& status) const;

  const LaunchRequest job_;
  const std::string host_;  // this one
  const fs::path folder_;   // of locks and marks
  const fs::path log_;
  FileDescriptor lock_;
  bool is_locked_ = false;
  uintmax_t log_begin_ = 0;  // of what this run of the setup prints
  std::optional<Process> process_;
  std::optional<Stopwatch> since_word_;  // that it waits
};

}  // namespace assay
