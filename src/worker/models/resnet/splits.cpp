#include "models/resnet/splits.h"

#include "base/error.h"

namespace assay::resnet {

void add_pair(std::vector<WeightSplit>& splits, const SplitPair& pair) {
  splits.push_back({pair.first_weight, 0});
  for (const char* name : {"weight", "bias", "running_mean", "running_var"}) splits.push_back({pair.norm + name, 0});
  splits.push_back({pair.second_weight, 1});
}

std::vector<std::string> parameters_under(const torch::nn::Module& network, const std::string& path,
                                          const std::string& other) {
  std::vector<std::string> names;
  for (const auto& item : network.named_parameters()) {
    if (item.key().starts_with(path) || (!other.empty() && item.key().starts_with(other))) names.push_back(item.key());
  }
  return names;
}

void refuse_sequences(const TensorParallel& parallel) {
  if (!parallel.splits_sequence()) return;
  throw ConfigError("Distributed.sequence_parallel: a residual network has no sequences");
}

}  // namespace assay::resnet
