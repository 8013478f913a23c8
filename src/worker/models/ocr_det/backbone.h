// MobileNetV3 large (Howard et al. 2019, arXiv:1905.02244) without its classifier, as PP-OCR's detectors use it. Names
// of parameters are PP-OCR's.
//
// Shapes: B batch, C channels, H and W of the image.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/types.h>

#include <array>
#include <vector>

namespace assay::ocr_det {

enum class Activation { None, Relu, HardSwish };

// Convolution without bias, batch normalisation, activation.
class ConvLayerImpl : public torch::nn::Module {
 public:
  struct Options {
    int64_t in, out;
    int64_t kernel = 1;
    int64_t stride = 1;
    int64_t groups = 1;
    Activation activation = Activation::None;
  };
  explicit ConvLayerImpl(const Options& options);
  // `residual`: added before the activation, if defined.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& residual = {});

 private:
  Activation activation_;
  torch::nn::Conv2d conv_{nullptr};
  torch::nn::BatchNorm2d bn_{nullptr};
};
TORCH_MODULE(ConvLayer);

// Weighs the channels by what a small network makes of their means.
class SqueezeExciteImpl : public torch::nn::Module {
 public:
  explicit SqueezeExciteImpl(int64_t channels);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::Conv2d conv2_{nullptr};
};
TORCH_MODULE(SqueezeExcite);

struct BackboneOptions {
  double scale = 0.5;   // of all widths; they become multiples of 8
  bool use_se = false;  // squeeze and excitation, which PP-OCR's mobile detector leaves out
};

// One block of the network: a wider image by a 1x1 convolution, one convolution for each of its channels, and a 1x1
// convolution back.
struct BlockSize {
  int64_t in, middle, out;
  int64_t kernel;
  int64_t stride;
  bool use_se;
  Activation activation;
};

inline constexpr int64_t kSqueeze = 4;  // squeeze and excitation works on so much fewer channels
inline constexpr size_t kNumStages = 4;

// The widths that the scale gives.
struct BackboneSizes {
  int64_t stem = 0;                                       // channels of the first convolution, of stride 2
  std::array<std::vector<BlockSize>, kNumStages> stages;  // their results are 1/4, 1/8, 1/16 and 1/32 of the image
  int64_t last = 0;                                       // channels of the convolution that ends the last stage
  std::array<int64_t, kNumStages> out_channels() const;
};
BackboneSizes backbone_sizes(const BackboneOptions& options);

class BottleneckImpl : public torch::nn::Module {
 public:
  explicit BottleneckImpl(const BlockSize& size);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  bool shortcut_;
  ConvLayer expand_{nullptr};
  ConvLayer each_{nullptr};
  SqueezeExcite se_{nullptr};
  ConvLayer linear_{nullptr};
};
TORCH_MODULE(Bottleneck);

class BackboneImpl : public torch::nn::Module {
 public:
  explicit BackboneImpl(const BackboneOptions& options);
  // [B, 3, H, W] with H and W divisible by 32 -> one [B, C, H / s, W / s] for each s of 4, 8, 16, 32.
  std::array<torch::Tensor, kNumStages> forward(const torch::Tensor& image);

 private:
  ConvLayer conv_{nullptr};
  std::array<std::vector<Bottleneck>, kNumStages> stages_;
  ConvLayer last_{nullptr};
};
TORCH_MODULE(Backbone);

}  // namespace assay::ocr_det
