// Batch normalisation, an addition and ReLU in one operator, forward and backward: y = relu(norm(x) + residual). As
// separate operators they read and write every activation seven times and were a third of a small network's time.
//
// Shapes: B batch, C channels, H height, W width. Sums are taken in fixed pieces and added in order, so results do not
// depend on the number of threads.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/types.h>

namespace assay {

struct NormActOptions {
  torch::Tensor residual;  // [B, C, H, W], added before ReLU; undefined: nothing
  bool relu = true;
};

// Uses the parameters, statistics and mode of `norm`, and updates its statistics in training as its own forward does.
// Float or double tensors [B, C, H, W] with channels last in memory, up to 4096 channels, take the fused path in
// training; everything else, and evaluation (so also export), goes through libtorch's operators. Where statistics are
// shared (nn/batch_statistics.h), tensors of other layouts and lower precisions are made to fit.
torch::Tensor norm_act(torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& x, const NormActOptions& options);

}  // namespace assay
