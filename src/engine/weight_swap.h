// Other data for a network's parameters for a while: averaged weights for an evaluation, a lower precision for a step.
// The parameters stay the same objects, so whoever holds one sees the other data too.
#pragma once

#include <torch/types.h>

#include <vector>

namespace assay {

class WeightSwap {
 public:
  struct Pair {
    torch::Tensor parameter;
    torch::Tensor replacement;  // same shape
  };
  explicit WeightSwap(std::vector<Pair> pairs) : pairs_(std::move(pairs)) {
    for (Pair& pair : pairs_) {
      torch::Tensor own = pair.parameter.detach();
      pair.parameter.set_data(pair.replacement);
      pair.replacement = own;
    }
  }
  ~WeightSwap() {
    for (Pair& pair : pairs_) pair.parameter.set_data(pair.replacement);
  }
  WeightSwap(const WeightSwap&) = delete;
  WeightSwap& operator=(const WeightSwap&) = delete;

 private:
  std::vector<Pair> pairs_;
};

}  // namespace assay
