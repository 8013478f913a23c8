// Where a process stands among all processes: FleetX's four axes, data, pipeline, sharding and tensor, the last one
// fastest. Each axis, and some products of axes, is a communicator.
#pragma once

#include <memory>
#include <vector>

#include "comm/world.h"
#include "parallel/options.h"

namespace assay {

struct MeshCoordinates {
  int data = 0;
  int pipeline = 0;
  int sharding = 0;
  int tensor = 0;
};

class Mesh {
 public:
  Mesh(comm::World& world, const ParallelOptions& options);  // borrows the world

  const MeshCoordinates& coordinates() const { return coordinates_; }
  int rank_of(const MeshCoordinates& coordinates) const;
  int rank() const { return rank_of(coordinates_); }
  int num_replicas() const { return options_.data * options_.sharding; }
  int replica() const { return coordinates_.data * options_.sharding + coordinates_.sharding; }

  comm::Communicator& all() const { return *all_; }
  comm::Communicator& data() const { return *data_; }
  comm::Communicator& sharding() const { return *sharding_; }
  comm::Communicator& tensor() const { return *tensor_; }
  comm::Communicator& pipeline() const { return *pipeline_; }
  comm::Communicator& replicas() const {
    return *replicas_;
  }  // data x sharding: other samples, the same part of the network
  comm::Communicator& model() const {
    return *model_;
  }  // pipeline x sharding x tensor: all parts of one copy of the network
  // Of these pipeline stages, this one among them, at this place of the other axes. The stages' processes call it for
  // the groups they are in in the same order.
  std::unique_ptr<comm::Communicator> stages(const std::vector<int>& stages, const std::string& name) const;

  double seconds_waited() const;

 private:
  comm::World& world_;
  ParallelOptions options_;
  MeshCoordinates coordinates_;
  std::unique_ptr<comm::Communicator> all_, data_, sharding_, tensor_, pipeline_, replicas_, model_;
};

}  // namespace assay
