// Other data for a network's parameters for a while: averaged weights for an evaluation, a lower precision for a step.
// The parameters stay the same objects, so whoever holds one sees the other data too.
#pragma once

#include <torch/types.h>

#include <functional>
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
      torch::Tensor current = pair.parameter.detach();
      pair.parameter.set_data(pair.replacement);
      pair.replacement = current;
    }
  }
  virtual ~WeightSwap() {
    for (Pair& pair : pairs_) pair.parameter.set_data(pair.replacement);
  }
  WeightSwap(const WeightSwap&) = delete;
  WeightSwap& operator=(const WeightSwap&) = delete;

 protected:
  WeightSwap() = default;  // for a swap of another kind

 private:
  std::vector<Pair> pairs_;
};

// The same for parameters whose memory others have views of: it stays, and the values in it change places.
class ValueSwap final : public WeightSwap {
 public:
  using Change = std::function<void()>;
  // Makes each exchange by `changes`.
  ValueSwap(std::vector<Pair> pairs, std::function<void(const Change&)> changes)
      : pairs_(std::move(pairs)), changes_(std::move(changes)) {
    exchange();
  }
  ~ValueSwap() override {
    try {
      exchange();
    } catch (const std::exception&) {  // other processes are lost, which whatever is done next with them says
    }
  }

 private:
  void exchange() {
    changes_([this] {
      const torch::NoGradGuard no_grad;
      for (Pair& pair : pairs_) {
        const torch::Tensor current = pair.parameter.detach().clone();
        pair.parameter.detach().copy_(pair.replacement);
        pair.replacement.copy_(current);
      }
    });
  }

  std::vector<Pair> pairs_;
  std::function<void(const Change&)> changes_;
};

}  // namespace assay
