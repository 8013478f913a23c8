// Runs the ranks of a step as one job of Slurm: sbatch, and in it one supervisor a node (launch/host/supervisor.h). The
// step's folder is on a file system that all nodes see; by its files the job is held on its lease, stopped and read.
#pragma once

#include <string>
#include <vector>

#include "launch/launcher.h"

namespace assay {

struct SlurmOptions {
  std::string partition = {};  // empty: Slurm's default
  std::string account = {};
  std::vector<std::string> options = {};  // of sbatch, after ours: "--exclusive", "--gpus-per-node=8"
  std::filesystem::path program = {};     // assay, at a path that holds on the nodes; empty: this one
};

class SlurmLauncher : public Launcher {
 public:
  explicit SlurmLauncher(SlurmOptions options) : options_(std::move(options)) {}
  std::string name() const override { return "slurm"; }
  // The job is submitted when this returns; it may wait in Slurm's queue for long (RunningStep::queued).
  std::unique_ptr<RunningStep> start(const LaunchRequest& request) override;
  // Finds the job by its number, or by its name when the number was not written any more.
  std::unique_ptr<RunningStep> attach(const LaunchRequest& request) override;

 private:
  SlurmOptions options_;
};

// What is written into the step's folder about the job, for people, `assay ps` and attach: {"run_id", "attempt",
// "name", "job_id" or null, "state": "submitting" | "queued" | "running" | "ended", "reason", "nodes"}.
inline constexpr const char* kSlurmFile = "slurm.json";
std::string slurm_log_name(int attempt);  // what Slurm and the batch script say

}  // namespace assay
