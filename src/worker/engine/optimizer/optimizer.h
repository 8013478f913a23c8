// What the engine needs of an optimizer: one update of all parameters, and its state for checkpoints. The fused rules
// are in fused_optimizer.h; a vendor may bring its own (adapter.h).
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// What an optimizer updates. With several processes it may be a part of the weights, or parts of parameters.
struct TrainedParameter {
  std::string name;
  torch::Tensor tensor;
  int64_t num_dims = 0;  // of the whole parameter, of which the tensor may be a flat piece
  bool counts = true;    // in sums over all processes; false where another one counts the same elements
};
struct ParameterSet {
  std::vector<TrainedParameter> parameters;
  std::vector<std::string> all_names = {};  // of all processes; empty: those of `parameters`
  // Makes sums over what this process has sums over what all processes have, which all call it for as many.
  std::function<void(std::vector<double>&)> sum_of_all = [](std::vector<double>& /*own*/) {};
  // Given where the network's weights are gathered from the tensors: makes a change of their values that is not an
  // update, and the network sees it when it computes next.
  std::function<void(const std::function<void()>& change)> change_values = {};
};

ParameterSet whole_parameters(const NamedTensors& parameters);

// Not thread-safe.
class Optimizer {
 public:
  struct Options {
    std::string name = "SGD";  // one of names()
    double weight_decay = 0;
    double momentum = 0.9;
    bool nesterov = false;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    std::optional<double> clip_norm = {};  // gradients are scaled down to this global norm
    // Parameters whose name contains one of these are not decayed. nullopt: with AdamW and LAMB those of one dimension
    // (biases, normalisation), with the others none.
    std::optional<std::vector<std::string>> no_decay = {};
    std::optional<double> ema_decay = {};  // of weight_average.h
  };
  // Every rule there is.
  static const std::vector<std::string>& names();

  struct Update {
    double learning_rate = 0;
    double gradient_scale = 1;     // the gradients are so many times too large: loss_scaler.h
    bool skip_non_finite = false;  // change nothing when a gradient is not finite, instead of failing
  };
  struct Outcome {
    std::optional<double> gradient_norm;  // of the true gradients before clipping; nullopt when it was not taken here
    bool skipped = false;
  };

  virtual ~Optimizer() = default;

  // One update with the gradients that the parameters hold; one without a gradient is left alone. When a gradient of
  // any process is not finite, no weight changes, and without skip_non_finite every process throws NonFiniteError.
  virtual Outcome step(const Update& update) = 0;
  // Forgets the gradients.
  virtual void clear_grad() = 0;

  virtual int64_t num_updates() const = 0;  // made, without skipped ones
  // Everything that the next updates depend on, by names that are the same in every run.
  virtual NamedTensors state() const = 0;
  // Throws DataError when a tensor is missing or has another shape or type; then nothing was changed. Tensors of
  // others may be there too.
  virtual void load_state(const std::map<std::string, torch::Tensor>& state) = 0;
};

// For implementations of load_state: the tensors of `wanted`, found in `saved` and checked, in the same order.
std::vector<torch::Tensor> find_state(const NamedTensors& wanted, const std::map<std::string, torch::Tensor>& saved);

}  // namespace assay
