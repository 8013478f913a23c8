#include "parallel/mesh.h"

#include "base/error.h"

namespace assay {

Mesh::Mesh(World& world, const ParallelOptions& o) : world_(world), options_(o) {
  ASSAY_CHECK(world.size() == o.world_size(), "the degrees are not those of the processes");
  int rest = world.rank();
  place_.tensor = rest % o.tensor;
  rest /= o.tensor;
  place_.sharding = rest % o.sharding;
  rest /= o.sharding;
  place_.pipeline = rest % o.pipeline;
  place_.data = rest / o.pipeline;

  // The ranks whose place differs from this one's in the axes that `varies` lets vary.
  struct Axes {
    bool data = false, pipeline = false, sharding = false, tensor = false;
  };
  const auto group = [&](const char* name, const Axes& varies) {
    std::vector<int> ranks;
    for (int rank = 0; rank < world.size(); ++rank) {
      MeshPlace other;
      int left = rank;
      other.tensor = left % o.tensor;
      left /= o.tensor;
      other.sharding = left % o.sharding;
      left /= o.sharding;
      other.pipeline = left % o.pipeline;
      other.data = left / o.pipeline;
      const bool member =
          (varies.data || other.data == place_.data) && (varies.pipeline || other.pipeline == place_.pipeline) &&
          (varies.sharding || other.sharding == place_.sharding) && (varies.tensor || other.tensor == place_.tensor);
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

int Mesh::rank_of(const MeshPlace& p) const {
  return ((p.data * options_.pipeline + p.pipeline) * options_.sharding + p.sharding) * options_.tensor + p.tensor;
}

std::unique_ptr<Communicator> Mesh::stages(const std::vector<int>& stages, const std::string& name) const {
  std::vector<int> ranks;
  for (const int stage : stages) {
    MeshPlace place = place_;
    place.pipeline = stage;
    ranks.push_back(rank_of(place));
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
