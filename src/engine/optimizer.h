// Update rules, each one pass over all parameters at once, spread over the compute threads.
//
// g gradient, w weight, l rate, d weight decay, all per element; g' = g + d * w for all but AdamW:
//   SGD       w -= l * g'
//   Momentum  v = mu * v + g';  w -= l * v      (with nesterov: w -= l * (g' + mu * v))
//   Adam      m = b1 * m + (1 - b1) * g';  s = b2 * s + (1 - b2) * g'^2;
//             w -= l * (m / (1 - b1^t)) / (sqrt(s / (1 - b2^t)) + eps)
//   AdamW     w -= l * d * w, then Adam with g
// One-dimensional parameters (biases, normalisation) are not decayed by AdamW, as in FleetX.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

class Optimizer {
 public:
  struct Options {
    std::string name = "SGD";  // SGD, Momentum, Adam, AdamW
    double weight_decay = 0;
    double momentum = 0.9;
    bool nesterov = false;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    std::optional<double> clip_norm;  // gradients are scaled down to this global norm
  };
  // Keeps the parameters, which must be float32 on the CPU; their names name the state in checkpoints.
  Optimizer(NamedTensors parameters, const Options& options);

  // One update with the gradients that the parameters hold; one without a gradient is left alone. Returns the norm of
  // all gradients before clipping when clip_norm is set. Throws NonFiniteError, before any weight changes, when that
  // norm is not finite.
  std::optional<double> step(double learning_rate);
  // Forgets the gradients.
  void clear_grad();

  int64_t num_updates() const { return num_updates_; }
  // "momentum.<parameter>", "moment1.<parameter>", ...
  NamedTensors state() const;
  // Throws DataError when a tensor is missing or has another shape.
  void load_state(const std::map<std::string, torch::Tensor>& state, int64_t num_updates);

 private:
  struct Slot {
    std::string name;
    torch::Tensor weight;
    torch::Tensor first;   // momentum or first moment; same layout as the weight
    torch::Tensor second;  // second moment
    bool decays = true;
  };
  struct Piece;  // a part of one parameter that one thread updates
  std::vector<Piece> pieces();
  double gradient_norm(const std::vector<Piece>& pieces) const;

  Options options_;
  std::vector<Slot> slots_;
  int64_t num_updates_ = 0;
};

}  // namespace assay
