// The computation of norm_act.h without autograd, for the operators that contain it.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/types.h>

#include "nn/norm_act.h"

namespace assay {

// True when the functions below take x (and the residual, if defined) with this normalisation in training.
bool can_fuse_norm(const torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& x, const torch::Tensor& residual);

// What the backward pass has to know of the forward one.
struct NormKept {
  torch::Tensor x, weight, bias, mean, inverse;
  torch::Tensor y;  // with ReLU and a residual; without a residual x tells where ReLU passed
  bool relu = true;
};
// The statistics of x; updates the running ones.
NormKept normalise(torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& x, bool relu);
// relu(norm(x) + residual), from what normalise() found. As often as needed.
torch::Tensor norm_output(const NormKept& kept, const torch::Tensor& residual);

struct NormGradients {
  torch::Tensor x, weight, bias;
  torch::Tensor residual;  // with ReLU and a residual
};
NormGradients norm_gradients(const torch::Tensor& dy, const NormKept& kept);

}  // namespace assay
