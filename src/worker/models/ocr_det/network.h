// A detector of texts with differentiable binarization (Liao et al. 2019, arXiv:1911.08947): MobileNetV3, a feature
// pyramid and two heads, as PP-OCR's mobile detector has them (Du et al. 2020, arXiv:2009.09941). Names of parameters
// are PP-OCR's.
//
// Shapes: B batch, H and W of the image.
#pragma once

#include <torch/nn/modules/conv.h>

#include <array>

#include "engine/module.h"
#include "models/ocr_det/backbone.h"

namespace assay::ocr_det {

struct Options {
  BackboneOptions backbone;
  int64_t neck_channels = 96;  // of the pyramid; a multiple of 4
  int64_t image_size = 640;    // height and width that the export declares, divisible by 32; others work too
};

// The channels of an output in training. In evaluation it has the first only.
enum MapChannel : int64_t { kShrinkChannel = 0, kThresholdChannel = 1, kBinaryChannel = 2, kNumMapChannels = 3 };

// The pyramid: each level adds the coarser ones, and all are put side by side at a quarter of the image.
class NeckImpl : public torch::nn::Module {
 public:
  NeckImpl(const std::array<int64_t, kNumStages>& in_channels, int64_t out_channels);
  torch::Tensor forward(const std::array<torch::Tensor, kNumStages>& features);  // [B, out, H / 4, W / 4]

 private:
  std::array<torch::nn::Conv2d, kNumStages> in_convs_;
  std::array<torch::nn::Conv2d, kNumStages> out_convs_;
};
TORCH_MODULE(Neck);

// From the pyramid to one map as large as the image.
class HeadImpl : public torch::nn::Module {
 public:
  explicit HeadImpl(int64_t in_channels);
  torch::Tensor forward(const torch::Tensor& features);  // probabilities [B, 1, H, W]

 private:
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr};
  torch::nn::ConvTranspose2d conv2_{nullptr};
  torch::nn::BatchNorm2d bn2_{nullptr};
  torch::nn::ConvTranspose2d conv3_{nullptr};
};
TORCH_MODULE(Head);

// Both maps of an image, and what follows from them.
class HeadsImpl : public torch::nn::Module {
 public:
  explicit HeadsImpl(int64_t in_channels);
  torch::Tensor forward(const torch::Tensor& features);  // what Detector gives

 private:
  Head shrink_{nullptr};
  Head threshold_{nullptr};
};
TORCH_MODULE(Heads);

class Detector final : public Network {
 public:
  explicit Detector(const Options& options);
  // {image [B, 3, H, W], ...} -> [B, 3, H, W] in training: shrink map P, threshold map T and their approximate binary
  // map 1 / (1 + exp(-50 (P - T))). [B, 1, H, W] in evaluation: P.
  torch::Tensor forward(const TensorList& inputs) override;

 private:
  Backbone backbone_{nullptr};
  Neck neck_{nullptr};
  Heads heads_{nullptr};
};

// Multiply-adds of a forward pass of training on one image of image_size.
double multiply_adds(const Options& options);

}  // namespace assay::ocr_det
