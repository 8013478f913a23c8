// A residual connection and the layer normalisation behind it in one operator, with the bias and the dropout of the
// layer that made the addend: sum = x + dropout(delta + bias); normed = norm(sum). As separate operators each of
// them reads and writes every activation.
//
// Shapes: rows of D numbers. Results do not depend on the number of threads.
#pragma once

#include <torch/types.h>

namespace assay {

struct LayerNormWeights {
  torch::Tensor weight, bias;  // [D]
  double epsilon = 1e-5;
};

// (x - mean) / sqrt(variance + epsilon) * weight + bias over the last dimension.
torch::Tensor layer_norm(const torch::Tensor& x, const LayerNormWeights& norm);

struct Addend {
  torch::Tensor delta;  // as x
  torch::Tensor bias;   // [D]
  double dropout = 0;   // probability that an element of delta + bias becomes 0; the caller passes 0 in evaluation
  uint64_t dropout_stream = 0;  // processes that drew the same seed for other rows have another one
};
struct ResidualNorm {
  torch::Tensor sum;     // x + dropout(delta + bias)
  torch::Tensor normed;  // layer_norm(sum)
};
ResidualNorm residual_norm(const torch::Tensor& x, const Addend& addend, const LayerNormWeights& norm);

}  // namespace assay
