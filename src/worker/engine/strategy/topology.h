// Which process this one is among those of a job. Knows nothing of how they exchange anything.
#pragma once

#include <string>

namespace assay {

struct Topology {
  std::string description = "one process";
  int world_size = 1;
  bool is_alone = true;
  bool is_writer = true;  // writes checkpoints, weights and the result
  // Processes that compute different samples of a batch, and which of them this one is.
  int num_replicas = 1;
  int replica = 0;
};

}  // namespace assay
