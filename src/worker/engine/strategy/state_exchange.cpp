#include "engine/strategy/state_exchange.h"

#include "engine/checkpoint/tensor_file.h"

namespace assay {

NamedTensors StateExchange::gather_weights(const Module& module) { return state_of(module.model()); }

NamedTensors StateExchange::gather_random(const torch::Tensor& mine) { return {{kRandomState, mine}}; }

std::optional<torch::Tensor> StateExchange::scatter_random(const TensorsByName& whole, int64_t /*step*/) {
  const auto found = whole.find(kRandomState);
  return found == whole.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace assay
