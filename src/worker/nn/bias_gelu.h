// A bias and GELU in one operator: gelu(x + bias), forward and backward; and both with the linear layer behind them.
#pragma once

#include <torch/types.h>

#include "nn/linear.h"

namespace assay {

enum class Gelu {
  Erf,   // x Phi(x), BERT's
  Tanh,  // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), GPT-2's
};

// x [..., D], bias [D]. Results do not depend on the number of threads.
torch::Tensor bias_gelu(const torch::Tensor& x, const torch::Tensor& bias, Gelu kind);

// A linear layer behind it, linear(bias_gelu(x, bias), weight). What GELU made is not kept but made again in the
// backward pass: a hundredth of the time for a quarter of the memory that the activations of a transformer take.
torch::Tensor gelu_linear(const torch::Tensor& x, const torch::Tensor& bias, Gelu kind, const torch::Tensor& weight,
                          WeightLayout layout);

}  // namespace assay
