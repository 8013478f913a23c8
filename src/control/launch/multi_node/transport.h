// How a controller reaches the hosts of a job. A session is one node of one job on its host; it brings the job there,
// keeps its lease, and brings back what it says. The launcher above (hosts.h) knows no ssh, and a session does not know
// the other nodes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/host/job_state.h"
#include "launch/launcher.h"

namespace assay {

// What is known of a node now.
struct NodeReport {
  std::optional<JobState> state = {};  // the newest, of this attempt
  double silent_s = 0;                 // since the host was last heard of
  std::string trouble = {};            // why it cannot be reached now; "" while it can
  std::string gone = {};  // why the node has no supervisor any more although it said no end; "" while it has
};

// Used by one thread at a time. Errors are InfrastructureError and begin with the name of the host.
class NodeSession {
 public:
  virtual ~NodeSession() = default;
  // Reaches the host and makes everything be there that does not depend on the other nodes: folders, programs, files.
  virtual void prepare() = 0;
  // TCP ports that are free there.
  virtual std::vector<int> free_ports(int count) = 0;
  // Of the host's devices that have a network of their own, by their number; empty: it has none.
  virtual std::map<int, std::string> device_addresses() = 0;
  // A path of the controller's run folder as the host sees it.
  virtual std::filesystem::path there(const std::filesystem::path& path) const = 0;
  // Hands over the job and returns when its ranks run. From here on the session keeps the lease, as long as it exists.
  virtual void start(const LaunchRequest& job) = 0;
  // Takes up what another controller started: keeps the lease, goes on bringing what it says. False: that attempt was
  // never started there.
  virtual bool attach(const LaunchRequest& job) = 0;
  virtual NodeReport look() = 0;
  // Asks for the end and returns at once; the report tells when it has come. Does not throw.
  virtual void request_stop(double grace_s) = 0;
  // Brings files and folders of the step's folder, given relative to it, and checks that they are what they are there.
  // Returns those that the host has.
  virtual std::vector<std::string> collect(const std::vector<std::string>& names) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string name() const = 0;
  // What the ranks of other nodes call node 0.
  virtual std::string master_address(const LaunchRequest& request) const = 0;
  // The session of node `node` of the request. Does nothing yet.
  virtual std::unique_ptr<NodeSession> open(const LaunchRequest& request, int node) = 0;
};

}  // namespace assay
