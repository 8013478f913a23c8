#include "engine/optimizer/weight_average.h"

namespace assay {

WeightAverage::WeightAverage(const ParameterSet& parameters, double decay) : set_(parameters), decay_(decay) {
  for (const TrainedParameter& parameter : set_.parameters) averages_.push_back(parameter.tensor.detach().clone());
}

void WeightAverage::update(int64_t num_updates) {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < averages_.size(); ++i) {
    const torch::Tensor weight = set_.parameters[i].tensor.detach();
    if (num_updates == 1) {
      averages_[i].copy_(weight);
    } else {
      averages_[i].mul_(decay_).add_(weight, 1 - decay_);
    }
  }
}

std::unique_ptr<WeightSwap> WeightAverage::use() const {
  std::vector<WeightSwap::Pair> pairs;
  for (size_t i = 0; i < averages_.size(); ++i) pairs.push_back({set_.parameters[i].tensor, averages_[i]});
  if (set_.change_values) return std::make_unique<ValueSwap>(std::move(pairs), set_.change_values);
  return std::make_unique<WeightSwap>(std::move(pairs));
}

void WeightAverage::adopt() const {
  const auto copy = [this] {
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < averages_.size(); ++i) set_.parameters[i].tensor.detach().copy_(averages_[i]);
  };
  set_.change_values ? set_.change_values(copy) : copy();
}

NamedTensors WeightAverage::state() const {
  NamedTensors state;
  for (size_t i = 0; i < averages_.size(); ++i) state.emplace_back("ema." + set_.parameters[i].name, averages_[i]);
  return state;
}

void WeightAverage::load_state(const std::map<std::string, torch::Tensor>& saved) {
  const std::vector<torch::Tensor> found = find_state(state(), saved);
  for (size_t i = 0; i < averages_.size(); ++i) averages_[i].copy_(found[i]);
}

}  // namespace assay
