// What residual networks say of how they are spread over processes.
#pragma once

#include <string>
#include <vector>

#include "engine/module.h"

namespace assay::resnet {

// Two convolutions, the first of which has a part of the output channels, with the normalisation between them.
struct SplitPair {
  std::string first_weight;
  std::string norm;  // its path with a dot behind it
  std::string second_weight;
};
void add_pair(std::vector<WeightSplit>& splits, const SplitPair& pair);

// The names of parameters that begin with `path`, or with `other` unless it is empty.
std::vector<std::string> parameters_under(const torch::nn::Module& network, const std::string& path,
                                          const std::string& other);

// Throws ConfigError when sequences are to be split: images have none.
void refuse_sequences(const TensorParallel& parallel);

}  // namespace assay::resnet
