#include "engine/optimizer/optimizer.h"

#include <fmt/format.h>

#include "base/error.h"

namespace assay {

const std::vector<std::string>& Optimizer::names() {
  static const std::vector<std::string> kNames = {"SGD", "Momentum", "Adam", "AdamW", "LAMB", "Adagrad"};
  return kNames;
}

ParameterSet whole_parameters(const NamedTensors& parameters) {
  ParameterSet set;
  for (const auto& [name, tensor] : parameters) {
    set.parameters.push_back({.name = name, .tensor = tensor, .num_dims = tensor.dim()});
  }
  return set;
}

std::vector<torch::Tensor> find_state(const NamedTensors& wanted, const std::map<std::string, torch::Tensor>& saved) {
  std::vector<torch::Tensor> tensors;
  for (const auto& [name, tensor] : wanted) {
    const auto found = saved.find(name);
    if (found == saved.end()) throw DataError(fmt::format("optimizer state has no tensor '{}'", name));
    if (found->second.sizes() != tensor.sizes() || found->second.scalar_type() != tensor.scalar_type()) {
      throw DataError(fmt::format("optimizer state '{}' has another shape or type", name));
    }
    tensors.push_back(found->second);
  }
  return tensors;
}

}  // namespace assay
