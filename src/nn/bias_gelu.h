// A bias and GELU in one operator: gelu(x + bias), forward and backward.
#pragma once

#include <torch/types.h>

namespace assay {

enum class Gelu {
  Erf,   // x Phi(x), BERT's
  Tanh,  // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), GPT-2's
};

// x [..., D], bias [D]. Results do not depend on the number of threads.
torch::Tensor bias_gelu(const torch::Tensor& x, const torch::Tensor& bias, Gelu kind);

}  // namespace assay
