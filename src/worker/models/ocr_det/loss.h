// The loss of differentiable binarization: L = 5 Ls + Lb + 10 Lt (Liao et al. 2019, section 3.4, weights of PP-OCR).
//
// Shapes: B batch, H and W of the image.
#pragma once

#include <torch/types.h>

namespace assay::ocr_det {

// What the maps should be: channels of [B, 4, H, W].
enum TargetChannel : int64_t { kShrinkMap = 0, kShrinkMask, kThresholdMap, kThresholdMask };

// `maps` is what a Detector gives: [B, 3, H, W] in training; of [B, 1, H, W], the shrink map alone, the loss is 5 Ls.
//   Ls  binary cross entropy of the shrink map where its mask is 1: mean over all pixels in texts and the 3 times as
//   many
//       others of the whole batch that have the largest
//   Lb  1 - 2 sum(B S M) / (sum(B M) + sum(S M)) for the binary map B, the shrink map S that it should be and its mask
//   M Lt  mean distance of the threshold map where its mask is 1
// Denominators have 1e-6 added.
torch::Tensor detection_loss(const torch::Tensor& maps, const torch::Tensor& targets);

}  // namespace assay::ocr_det
