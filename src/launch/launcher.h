// A launcher starts the ranks of one step somewhere and tells how they ended. It knows commands and hosts, not plans.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"

namespace assay {

struct LaunchRequest {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env = {};
  std::filesystem::path cwd;
  std::filesystem::path folder;  // rank<r>.log and records go here
  int nproc = 1;                 // ranks on this host
  int nnodes = 1;                // hosts of the job, each with as many ranks
  int node_rank = 0;             // which of them this host is
  // Parameter servers: the last ranks of this host, the only one then. Every rank gets the variables of ps/role.h, and
  // servers a free port each, another one at every start.
  int num_servers = 0;
  std::string tree_mark;  // everything started carries it, see ProcessOptions
};

struct LaunchResult {
  ExitStatus status;  // of the rank that decided: the cause of the failure, or the last to finish
  int deciding_rank = 0;
  // The rank that decided failed by itself, by a code or by a signal that was not ours.
  bool failed_by_itself = false;
  std::vector<ExitStatus> ranks;  // of this host
  int64_t max_rss_bytes = 0;      // the sum over the ranks of each one's largest
};

// The ranks of one step. Destroying it kills what still runs.
class RunningStep {
 public:
  virtual ~RunningStep() = default;
  // Waits at most this long; nullopt while ranks still run, or earlier when wake_fd becomes readable. When a rank fails
  // the others are stopped before this returns. Who lost touch with the others (code 13) is seldom the cause: for some
  // seconds a rank is looked for that ended in another way.
  virtual std::optional<LaunchResult> wait_for(double seconds, int wake_fd) = 0;
  // Asks every rank to end, and ends by force what is left after the grace time.
  virtual LaunchResult stop(double grace_seconds) = 0;
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual std::string name() const = 0;
  // Throws InfrastructureError when a rank cannot be started; nothing is left running then.
  virtual std::unique_ptr<RunningStep> start(const LaunchRequest& request) = 0;
};

// The file a rank writes its records to: records.jsonl for rank 0, records.rank<r>.jsonl for the others.
std::string records_file_name(int rank);

}  // namespace assay
