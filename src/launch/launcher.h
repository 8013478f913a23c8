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

// A machine that ranks run on.
struct Host {
  std::string name;          // as people call it; unique in a run
  std::string address = {};  // where ssh and the other hosts reach it; empty: its name
  std::string user = {};     // empty: ssh's own choice, as for the rest
  int port = 0;
  std::filesystem::path identity_file = {};
  std::filesystem::path known_hosts = {};
  std::filesystem::path work_dir = {};  // there; mirrors of run folders lie under it
  std::filesystem::path program = {};   // assay there; empty: ours, staged
  const std::string& reached_at() const { return address.empty() ? name : address; }
};

// One node of a job.
struct NodePlace {
  Host host;
  std::vector<int> devices = {};  // one a rank
  // Of devices that have a network of their own, by their number: launch/device_addresses.h.
  std::map<int, std::string> device_addresses = {};
};

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

  // --- for launchers that start all nodes of a job: one place a node; empty: this process starts its own node
  std::vector<NodePlace> nodes = {};
  std::string run_id = {};
  int attempt = 1;                   // an earlier one is never attached to
  std::string hardware = {};         // of the devices, for their locks: "A100"
  std::string visible_devices = {};  // the variable that tells a rank its devices: "CUDA_VISIBLE_DEVICES"; empty: none
  std::string framework = {};        // launch/rank_environment.h
  double lease_s = 60;               // what is started ends when nobody has cared for so long
  double monitor_interval_s = 0;     // 0: no monitor
  std::vector<std::string> monitor_command = {};  // prints figures of the devices: monitor/devices.h
  bool clear_caches = false;                      // drop the page cache first, where that is allowed
  double time_limit_s = 0;                        // for a scheduler that must know it; kept by who waits. 0: none
  std::vector<std::string> collect = {};
  std::vector<std::filesystem::path> staged = {};  // files and folders to be there, at the same path below the mirror
  // What prepares a host before its first job of the run, and its variables; empty: nothing. Needs a run folder that
  // all hosts share: launch/host_setup.h.
  std::vector<std::string> setup = {};
  std::map<std::string, std::string> setup_env = {};
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

// The file a rank writes its records to: records.jsonl for rank 0, records.rank<r>.jsonl for the others.
std::string records_file_name(int rank);

}  // namespace assay
