// What a convolution's kernel sees at each of its places, side by side, so that the convolution becomes one matrix
// product. In channels-last memory, for float and double.
//
// Shapes: B batch, C channels, K kernel, H and W of the image, Y and X of the result; padding K / 2.
#pragma once

#include <torch/types.h>

namespace assay {

struct PatchShape {
  int64_t kernel = 3;
  int64_t stride = 1;
};

// x [B, C, H, W] -> [B, Y, X, K K C], zeros where the kernel stands over the edge.
torch::Tensor take_patches(const torch::Tensor& x, const PatchShape& shape);
// The gradient of x, which has the sizes of `like`, from that of its patches: a pixel's values in all of them summed.
torch::Tensor sum_patches(const torch::Tensor& patches, const torch::Tensor& like, const PatchShape& shape);

}  // namespace assay
