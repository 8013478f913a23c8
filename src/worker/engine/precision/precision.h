// The precision of a run. O1: weights in float32, operators in the lower precision where that is safe. O2: also the
// weights that the network computes with, while the optimizer, checkpoints and evaluations have the float32 ones.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "engine/precision/loss_scaler.h"
#include "engine/precision/operator_precision.h"
#include "engine/precision/weight_swap.h"

namespace assay {

struct PrecisionOptions {
  torch::ScalarType dtype = torch::kFloat;          // Engine.precision: of weights and inputs, float32 or float64
  std::optional<torch::ScalarType> mixed = {};      // Engine.mix_precision.dtype when enabled
  bool low_weights = false;                         // level O2
  std::vector<std::string> black_list = {};         // custom_black_list
  std::vector<std::string> white_list = {};         // custom_white_list
  std::optional<LossScaler::Options> scaling = {};  // nullopt: the loss is not scaled
  torch::Device device = torch::kCPU;               // where the network computes
};
// "float32", "bfloat16", ...: what an operator computes in at most speed; the name of its peak in the device registry.
std::string precision_name(const PrecisionOptions& options);

// Which dense parameters are in O2's lower precision: not biases and normalisation.
inline bool computes_low(const torch::Tensor& parameter) { return parameter.dim() > 1; }

// O2's weights: copies in the lower precision, made anew from the float32 ones for every step, so that they are no
// state of their own. A vendor may derive from it (Adapter::model_to_fp16).
class LowPrecisionWeights {
 public:
  LowPrecisionWeights(std::vector<torch::Tensor> parameters, torch::ScalarType dtype);
  virtual ~LowPrecisionWeights() = default;
  // The parameters are of the lower precision as long as the result lives; gradients made meanwhile stay so.
  virtual std::unique_ptr<WeightSwap> use();

 private:
  std::vector<torch::Tensor> parameters_;
  std::vector<torch::Tensor> copies_;
};

class Precision {
 public:
  // Throws ConfigError for unknown operators and for what the device cannot do.
  explicit Precision(const PrecisionOptions& options);

  // Network and inputs in the type and on the device of the run. Labels and other integers keep their type.
  void convert(torch::nn::Module& network) const;
  Batch convert(Batch batch) const;
  // For a forward pass of training; null without mixed precision.
  std::unique_ptr<AutocastScope> autocast() const;
  // Of the custom lists: what has not run so far, so that its listing changed nothing. To be asked once.
  std::vector<std::string> idle_operators();

 private:
  PrecisionOptions options_;
  std::unique_ptr<OperatorPrecision> operators_;
};

}  // namespace assay
