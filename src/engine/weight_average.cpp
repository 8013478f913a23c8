#include "engine/weight_average.h"

namespace assay {

WeightAverage::WeightAverage(NamedTensors parameters, double decay)
    : parameters_(std::move(parameters)), decay_(decay) {
  for (const auto& [name, weight] : parameters_) averages_.push_back(weight.detach().clone());
}

void WeightAverage::update(int64_t num_updates) {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < averages_.size(); ++i) {
    const torch::Tensor weight = parameters_[i].second.detach();
    if (num_updates == 1) {
      averages_[i].copy_(weight);
    } else {
      averages_[i].mul_(decay_).add_(weight, 1 - decay_);
    }
  }
}

std::unique_ptr<WeightSwap> WeightAverage::use() const {
  std::vector<WeightSwap::Pair> pairs;
  for (size_t i = 0; i < averages_.size(); ++i) pairs.push_back({parameters_[i].second, averages_[i]});
  return std::make_unique<WeightSwap>(std::move(pairs));
}

NamedTensors WeightAverage::state() const {
  NamedTensors state;
  for (size_t i = 0; i < averages_.size(); ++i) state.emplace_back("ema." + parameters_[i].first, averages_[i]);
  return state;
}

void WeightAverage::load_state(const std::map<std::string, torch::Tensor>& saved) {
  const std::vector<torch::Tensor> found = find_state(state(), saved);
  for (size_t i = 0; i < averages_.size(); ++i) averages_[i].copy_(found[i]);
}

}  // namespace assay
