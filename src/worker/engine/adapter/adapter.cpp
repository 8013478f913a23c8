#include "engine/adapter/adapter.h"

#include <algorithm>

namespace assay {

NamedTensors trainable_parameters(const Network& network) {
  NamedTensors parameters;
  for (const auto& item : network.named_parameters()) {
    if (item.value().requires_grad()) parameters.emplace_back(item.key(), item.value());
  }
  return parameters;
}

std::unique_ptr<Optimizer> Adapter::create_optimizer(Module& module, const Optimizer::Options& options) {
  return module.configure_optimizers(options);
}

std::unique_ptr<LowPrecisionWeights> Adapter::model_to_fp16(Network& network, torch::ScalarType dtype) {
  const std::vector<std::string> tables = network.sparse_parameters();
  std::vector<torch::Tensor> parameters;
  for (const auto& [name, parameter] : trainable_parameters(network)) {
    const bool is_table = std::find(tables.begin(), tables.end(), name) != tables.end();
    if (!is_table && computes_low(parameter)) parameters.push_back(parameter);
  }
  return std::make_unique<LowPrecisionWeights>(std::move(parameters), dtype);
}

std::unique_ptr<LossScaler> Adapter::create_grad_scaler(const LossScaler::Options& options) {
  return std::make_unique<LossScaler>(options);
}

}  // namespace assay
