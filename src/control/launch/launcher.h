// A launcher starts the ranks of one step somewhere and tells how they ended. It knows commands and hosts, not plans.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "site/host.h"
#include "site/settings.h"

namespace assay {

// What every rank runs.
struct RankCommand {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env = {};
  std::filesystem::path cwd = {};  // the run folder
  // Ranks stand in folders of their own in the step's folder, and "{run}" in their words means `cwd`.
  bool has_work_folder = false;
  std::string framework = {};  // whose variables ranks get besides the usual ones: launch/host/rank_environment.h
};

struct RankNumbers {
  int nproc = 1;      // ranks on this host
  int nnodes = 1;     // hosts of the job, each with as many ranks
  int node_rank = 0;  // which of them this host is
  // Parameter servers: the last num_servers ranks of this host, the only one then. Every rank gets the variables of
  // base/server_role.h, and servers a free port each, another one at every start.
  int num_servers = 0;
  int world_size() const { return nnodes * nproc; }
  int first_rank() const { return node_rank * nproc; }
};

// For launchers that start all nodes of a job.
struct JobPlacement {
  std::vector<NodePlace> nodes = {};  // one per node; empty: this process starts its own node, or a scheduler chooses
  std::string hardware = {};          // of the devices, for their locks: "A100"
};

// For hosts that do not share the run folder.
struct JobStaging {
  std::vector<std::filesystem::path> staged = {};  // files and folders to be there, at the same path below the mirror
  std::vector<std::string> collect = {};           // what comes back: paths in the step's folder, relative to it
};

struct LaunchRequest {
  RankCommand command;
  std::filesystem::path folder = {};  // rank<r>.log and records go here
  RankNumbers ranks = {};
  std::string tree_mark = {};  // everything started carries it, see ProcessOptions
  std::string run_id = {};
  int attempt = 1;  // an earlier one is never attached to
  JobPlacement placement = {};
  SiteSettings site = {};
  JobStaging staging = {};
  double time_limit_s = 0;  // for a scheduler that must know it; kept by who waits. 0: none
};

struct LaunchResult {
  ExitStatus status;  // of the rank that decided: the cause of the failure, or the last to finish
  int deciding_rank = 0;
  // The rank that decided failed by itself, by a code or by a signal that was not ours.
  bool failed_by_itself = false;
  std::vector<ExitStatus> ranks;  // of this host, or of all nodes in order
  // Set when not a rank but its surroundings failed: "node2: no connection for 60 s". The status means nothing then.
  std::string infrastructure = {};
  int64_t max_rss_bytes = 0;  // the sum over the ranks of each one's largest
  // Processes that a rank had started and that still ran when it had ended by itself; they were ended then.
  std::vector<std::string> left_behind = {};  // "rank 0 left 2 processes running: sleep (4711), python3 (4712)"
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
  // Why nothing runs yet: "queued by Slurm as job 12: Resources"; empty: ranks run, and limits of time count.
  virtual std::string queued() { return ""; }
  // Lets go of what has a lease: destroying it ends nothing then, and another controller may attach while the lease
  // lasts. What has none cannot be left.
  virtual void leave() {}
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual std::string name() const = 0;
  // Throws InfrastructureError when a rank cannot be started; nothing is left running then.
  virtual std::unique_ptr<RunningStep> start(const LaunchRequest& request) = 0;
  // What a controller that is gone started with the same request and attempt: running, or ended meanwhile. Null: there
  // is no such thing, and nothing of it is left running.
  virtual std::unique_ptr<RunningStep> attach(const LaunchRequest& /*request*/) { return nullptr; }
};

}  // namespace assay
