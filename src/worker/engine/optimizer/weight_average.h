// An exponential moving average of the weights: a = decay * a + (1 - decay) * w after every update; the first update
// sets a = w, as PyTorch's AveragedModel does. Evaluations and the final weights of a run use the average, training
// does not.
#pragma once

#include <memory>

#include "engine/optimizer/optimizer.h"
#include "engine/precision/weight_swap.h"

namespace assay {

class WeightAverage {
 public:
  // Keeps the parameters. Of those that are pieces it has the averages of the pieces.
  WeightAverage(const ParameterSet& parameters, double decay);
  WeightAverage(const NamedTensors& parameters, double decay) : WeightAverage(whole_parameters(parameters), decay) {}

  // After each update; `num_updates` counts this one.
  void update(int64_t num_updates);
  // The parameters hold the average as long as the result lives; state() must wait for its end.
  std::unique_ptr<WeightSwap> use() const;
  // The parameters become the average.
  void adopt() const;

  NamedTensors state() const;  // "ema.<parameter>"
  void load_state(const std::map<std::string, torch::Tensor>& state);

 private:
  ParameterSet set_;
  std::vector<torch::Tensor> averages_;
  double decay_;
};

}  // namespace assay
