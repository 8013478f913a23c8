#include "parallel/mesh.h"

#include "base/error.h"

namespace assay {

namespace {

// FleetX's order of the axes: tensor fastest, then sharding, pipeline and data.
MeshCoordinates coordinates_of(int rank, const ParallelOptions& o) {
  MeshCoordinates c;
  c.tensor = rank % o.tensor;
  rank /= o.tensor;
  c.sharding = rank % o.sharding;
  rank /= o.sharding;
  c.pipeline = rank % o.pipeline;
  c.data = rank / o.pipeline;
  return c;
}

}  // namespace

Mesh::Mesh(comm::World& world, const ParallelOptions& o)
    : world_(world), options_(o), coordinates_(coordinates_of(world.rank(), o)) {
  ASSAY_CHECK(world.size() == o.world_size(), "the degrees are not those of the processes");
  // The ranks whose coordinates differ from this one's in the axes that `varies` lets vary.
  struct Axes {
    bool data = false, pipeline = false, sharding = false, tensor = false;
  };
  const auto group = [&](const char* name, const Axes& varies) {
    std::vector<int> ranks;
    for (int rank = 0; rank < world.size(); ++rank) {
      const MeshCoordinates other = coordinates_of(rank, o);
      const bool member = (varies.data || other.data == coordinates_.data) &&
                          (varies.pipeline || other.pipeline == coordinates_.pipeline) &&
                          (varies.sharding || other.sharding == coordinates_.sharding) &&
                          (varies.tensor || other.tensor == coordinates_.tensor);
      if (member) ranks.push_back(rank);
    }
    return world.group(ranks, name);
  };
  all_ = group("all", {true, true, true, true});
  data_ = group("dp", {.data = true});
  sharding_ = group("sharding", {.sharding = true});
  tensor_ = group("mp", {.tensor = true});
  pipeline_ = group("pp", {.pipeline = true});
  replicas_ = group("replicas", {.data = true, .sharding = true});
  model_ = group("model", {.pipeline = true, .sharding = true, .tensor = true});
}

int Mesh::rank_of(const MeshCoordinates& p) const {
  return ((p.data * options_.pipeline + p.pipeline) * options_.sharding + p.sharding) * options_.tensor + p.tensor;
}

std::unique_ptr<comm::Communicator> Mesh::stages(const std::vector<int>& stages, const std::string& name) const {
  std::vector<int> ranks;
  for (const int stage : stages) {
    MeshCoordinates coordinates = coordinates_;
    coordinates.pipeline = stage;
    ranks.push_back(rank_of(coordinates));
  }
  return world_.group(ranks, name);
}

double Mesh::seconds_waited() const {
  double sum = 0;
  for (const auto* group : {&all_, &data_, &sharding_, &tensor_, &pipeline_, &replicas_, &model_}) {
    sum += (*group)->seconds_waited();
  }
  return sum;
}

}  // namespace assay
