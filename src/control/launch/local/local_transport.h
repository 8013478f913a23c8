// Nodes of a job on this machine: supervisors of their own, met in the step's folder itself.
#pragma once

#include "launch/multi_node/transport.h"

namespace assay {

class LocalTransport : public Transport {
 public:
  std::string name() const override { return "local"; }
  std::string master_address(const LaunchRequest& request) const override;
  std::unique_ptr<NodeSession> open(const LaunchRequest& request, int node) override;
};

}  // namespace assay
