// Transposed convolutions that enlarge an image without overlap.
#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/types.h>

namespace assay {

// conv.forward(x), for x [B, in, H, W] and a kernel as large as its stride: every pixel becomes a patch of its own, so
// in training it is one matrix product. libtorch goes through im2col, an image at a time and with channels first.
// Evaluation (so also export) is libtorch's operator.
torch::Tensor convolve_transposed(torch::nn::ConvTranspose2dImpl& conv, const torch::Tensor& x);

}  // namespace assay
