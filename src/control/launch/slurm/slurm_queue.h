// What Slurm's commands are asked and how their answers are read. Knows jobs of Slurm, and nothing of ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/process.h"

namespace assay {

struct SlurmJob {
  std::string id;
  std::string state;   // "PENDING", "RUNNING", "COMPLETED", ...
  std::string reason;  // why it waits, "None" when it does not
  std::string nodes;   // "n[1-2]"
  bool pending() const { return state == "PENDING" || state == "CONFIGURING" || state == "REQUEUED"; }
  bool final() const;  // nothing of it runs, and nothing will
  // A reason to wait that will not pass: more nodes than the partition has, an account that is not allowed.
  bool hopeless() const;
};

// Submits a batch script and returns the job's number. Throws InfrastructureError with what sbatch said.
std::string submit_slurm_job(const std::vector<std::string>& options, const std::vector<std::string>& script);

// Never throws: who cannot reach Slurm now tries again later.
void cancel_slurm_job(const std::string& id);

// The newest job with this name, also one that ended a little while ago; nullopt: none. Throws InfrastructureError when
// Slurm does not answer.
std::optional<SlurmJob> find_slurm_job(const std::string& name);

// Whether jobs of so many nodes can run in the partition ("": the default one); what is wrong, or "".
std::string slurm_partition_problem(const std::string& partition, int nnodes);

// Nodes of the partition that nobody uses now, at most so many. Throws InfrastructureError when Slurm does not answer.
std::vector<std::string> idle_slurm_nodes(const std::string& partition, int most);

// One question about a job, asked without waiting for the answer: Slurm's controller may be slow or away.
class SlurmQuestion {
 public:
  explicit SlurmQuestion(const std::string& job_id);
  struct Answer {
    std::optional<SlurmJob> job;  // nullopt: Slurm does not know it, or did not answer
    bool unknown_job = false;
    std::string error = {};
  };
  std::optional<Answer> poll();  // nullopt: not yet

 private:
  TempFolder folder_;
  Process process_;
  std::string job_id_;
};

// "12|RUNNING|None|n[1-2]", as squeue is asked to print; nullopt for anything else.
std::optional<SlurmJob> slurm_job_of_line(std::string_view line);

}  // namespace assay
