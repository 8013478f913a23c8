// Where a process stands among all processes: FleetX's four axes, data, pipeline, sharding and tensor, the last one
// fastest. Each axis, and some products of axes, is a communicator.
#pragma once

#include <memory>
#include <vector>

#include "comm/world.h"
#include "parallel/options.h"

namespace assay {

struct MeshPlace {
  int data = 0;
  int pipeline = 0;
  int sharding = 0;
  int tensor = 0;
};

class Mesh {
 public:
  Mesh(World& world, const ParallelOptions& options);  // borrows the world

  const MeshPlace& place() const { return place_; }
  int rank_of(const MeshPlace& place) const;
  int rank() const { return rank_of(place_); }
  int num_replicas() const { return options_.data * options_.sharding; }
  int replica() const { return place_.data * options_.sharding + place_.sharding; }

  Communicator& all() const { return *all_; }
  Communicator& data() const { return *data_; }
  Communicator& sharding() const { return *sharding_; }
  Communicator& tensor() const { return *tensor_; }
  Communicator& pipeline() const { return *pipeline_; }
  Communicator& replicas() const { return *replicas_; }  // data x sharding: other samples, the same part of the network
  Communicator& model() const { return *model_; }  // pipeline x sharding x tensor: all parts of one copy of the network
  // Of these pipeline stages, this one among them, at this place of the other axes. The stages' processes call it for
  // the groups they are in in the same order.
  std::unique_ptr<Communicator> stages(const std::vector<int>& stages, const std::string& name) const;

  double seconds_waited() const;

 private:
  World& world_;
  ParallelOptions options_;
  MeshPlace place_;
  std::unique_ptr<Communicator> all_, data_, sharding_, tensor_, pipeline_, replicas_, model_;
};

}  // namespace assay
