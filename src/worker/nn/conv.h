// Convolutions by the algorithm that is fastest for their shape: 1x1 as a matrix product, 3x3 of stride 1 by Winograd's
// minimal filtering, other 3x3 with many channels as a matrix product with patches, the rest by libtorch.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/types.h>

namespace assay {

// conv.forward(x), for x [B, in, H, W]. Has its own algorithms in training, for float and double on the CPU in
// channels-last memory; everything else, and evaluation (so also export), goes through libtorch's operators.
torch::Tensor convolve(torch::nn::Conv2dImpl& conv, const torch::Tensor& x);

// convolve(conv, relu(norm(x))) with the result of ReLU not kept for the backward pass but made again there: one pass
// over x for half of the activations' memory.
torch::Tensor norm_relu_convolve(torch::nn::BatchNorm2dImpl& norm, torch::nn::Conv2dImpl& conv, const torch::Tensor& x);

}  // namespace assay
