// The running nodes of one job, seen as one step: the first failing rank decides over all of them, a host that is lost
// is a failure of the infrastructure, and what is left is stopped.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "launch/failure_rule.h"
#include "launch/launcher.h"
#include "launch/multi_node/transport.h"

namespace assay {

class HostsStep : public RunningStep {
 public:
  HostsStep(LaunchRequest request, std::vector<std::unique_ptr<NodeSession>> sessions);
  ~HostsStep() override;
  std::optional<LaunchResult> wait_for(double seconds, int wake_fd) override;
  LaunchResult stop(double grace_seconds) override;
  void leave() override { is_left_ = true; }
  // Whether what another controller left is worth going on with: all nodes run or have ended, or a rank's failure has
  // decided. Not when a node's lease lapsed, or it was never started.
  bool can_go_on();

 private:
  struct Node {
    std::unique_ptr<NodeSession> session;
    NodeReport report = {};
    bool ended = false;  // by its own word; then report.state is its last
  };

  size_t poll_nodes();  // asks every node; returns how many have not ended
  void note_end(size_t node);
  bool is_decided() const;
  void fail(size_t node, const std::string& why);
  void stop_nodes(double grace_seconds);
  LaunchResult finish();
  LaunchResult combined() const;
  void bring_back(LaunchResult& result);

  const LaunchRequest request_;
  std::vector<Node> nodes_;
  FailureRule rule_;  // of the nodes with a rank that failed by itself
  std::string infrastructure_;
  std::optional<LaunchResult> result_;  // once it is known
  bool is_left_ = false;
};

}  // namespace assay
