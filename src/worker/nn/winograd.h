// 3x3 convolutions with a quarter of the multiplications: F(4x4, 3x3) of Winograd's minimal filtering (Lavin and Gray
// 2015). Tiles of 6x6 inputs and the weights are transformed, multiplied as 36 matrix products over channels, and the
// products transformed to 4x4 outputs. Rounding is a few times that of the plain sum, about 1e-6 of the largest value.
//
// Stride 1, padding 1. Activations [B, C, H, W] and weights [out, in, 3, 3] float or double, channels last in memory.
// Each output tile is summed by one thread, so results do not depend on their number.
#pragma once

#include <torch/types.h>

namespace assay {

torch::Tensor winograd_forward(const torch::Tensor& x, const torch::Tensor& weight);
torch::Tensor winograd_input_gradient(const torch::Tensor& dy, const torch::Tensor& weight);
torch::Tensor winograd_weight_gradient(const torch::Tensor& dy, const torch::Tensor& x);

}  // namespace assay
