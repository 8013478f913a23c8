#include "models/ocr_det/network.h"

#include <torch/nn/init.h>

#include <cmath>
#include <string>

#include "nn/conv.h"
#include "nn/conv_transpose.h"
#include "nn/norm_act.h"

namespace assay::ocr_det {

namespace {

constexpr double kSteepness = 50;  // k of the paper
constexpr int64_t kNeckParts = 4;  // levels that share the channels of the pyramid
constexpr int64_t kHeadNarrowing = 4;

torch::nn::Conv2d plain_conv(int64_t in, int64_t out, int64_t kernel) {
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(in, out, kernel).padding(kernel / 2).bias(false));
  torch::nn::init::kaiming_uniform_(conv->weight);
  return conv;
}

// Doubles an image. Every new pixel comes from one old one, so what counts for the size of weights is `in`.
torch::nn::ConvTranspose2d doubling_conv(int64_t in, int64_t out) {
  torch::nn::ConvTranspose2d conv(torch::nn::ConvTranspose2dOptions(in, out, 2).stride(2));
  const double bound = std::sqrt(6.0 / static_cast<double>(in));
  torch::nn::init::uniform_(conv->weight, -bound, bound);
  torch::nn::init::zeros_(conv->bias);
  return conv;
}

torch::Tensor enlarged(const torch::Tensor& x, double factor) {
  return at::upsample_nearest2d(x, c10::nullopt, at::ArrayRef<double>({factor, factor}));
}

}  // namespace

NeckImpl::NeckImpl(const std::array<int64_t, kNumStages>& in_channels, int64_t out_channels)
    : in_convs_{nullptr, nullptr, nullptr, nullptr}, out_convs_{nullptr, nullptr, nullptr, nullptr} {
  for (size_t i = 0; i < kNumStages; ++i) {
    const std::string level = std::to_string(i + 2);  // the logarithm of its stride
    in_convs_[i] = register_module("in" + level + "_conv", plain_conv(in_channels[i], out_channels, 1));
    out_convs_[i] = register_module("p" + level + "_conv", plain_conv(out_channels, out_channels / kNeckParts, 3));
  }
}

torch::Tensor NeckImpl::forward(const std::array<torch::Tensor, kNumStages>& features) {
  std::vector<torch::Tensor> levels;  // from coarse to fine
  torch::Tensor sum;
  for (size_t i = kNumStages; i-- > 0;) {
    const torch::Tensor level = convolve(*in_convs_[i], features[i]);
    sum = sum.defined() ? level + enlarged(sum, 2) : level;
    const torch::Tensor result = convolve(*out_convs_[i], sum);
    levels.push_back(i > 0 ? enlarged(result, static_cast<double>(1 << i)) : result);
  }
  return torch::cat(levels, 1);
}

HeadImpl::HeadImpl(int64_t in_channels) {
  const int64_t width = in_channels / kHeadNarrowing;
  conv1_ = register_module("conv1", plain_conv(in_channels, width, 3));
  bn1_ = register_module("conv_bn1", torch::nn::BatchNorm2d(width));
  conv2_ = register_module("conv2", doubling_conv(width, width));
  bn2_ = register_module("conv_bn2", torch::nn::BatchNorm2d(width));
  conv3_ = register_module("conv3", doubling_conv(width, 1));
}

torch::Tensor HeadImpl::forward(const torch::Tensor& features) {
  torch::Tensor x = norm_act(*bn1_, convolve(*conv1_, features), {.residual = {}, .relu = true});
  x = norm_act(*bn2_, convolve_transposed(*conv2_, x), {.residual = {}, .relu = true});
  x = convolve_transposed(*conv3_, x);
  // Differences of probabilities are multiplied by 50: half precision has no digits left for that.
  return torch::sigmoid(x.element_size() < 4 ? x.to(torch::kFloat) : x);
}

HeadsImpl::HeadsImpl(int64_t in_channels) {
  shrink_ = register_module("binarize", Head(in_channels));
  threshold_ = register_module("thresh", Head(in_channels));
}

torch::Tensor HeadsImpl::forward(const torch::Tensor& features) {
  const torch::Tensor shrink = shrink_->forward(features);
  if (!is_training()) return shrink;
  const torch::Tensor threshold = threshold_->forward(features);
  return torch::cat({shrink, threshold, torch::sigmoid(kSteepness * (shrink - threshold))}, 1);
}

Detector::Detector(const Options& options) {
  backbone_ = register_module("backbone", Backbone(options.backbone));
  neck_ = register_module("neck", Neck(backbone_sizes(options.backbone).out_channels(), options.neck_channels));
  heads_ = register_module("head", Heads(options.neck_channels));
  for (torch::Tensor& parameter : parameters()) {
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(torch::MemoryFormat::ChannelsLast));
  }
}

torch::Tensor Detector::forward(const TensorList& inputs) {
  return heads_->forward(neck_->forward(backbone_->forward(inputs.at(0))));
}

double multiply_adds(const Options& options) {
  const BackboneSizes sizes = backbone_sizes(options.backbone);
  int64_t side = options.image_size / 2;
  double sum = 0;
  const auto conv = [&](int64_t in, int64_t out, int64_t kernel) {
    sum += static_cast<double>(in * out * kernel * kernel) * static_cast<double>(side * side);
  };
  conv(3, sizes.stem, 3);
  std::array<int64_t, kNumStages> sides{};
  for (size_t i = 0; i < kNumStages; ++i) {
    for (const BlockSize& block : sizes.stages[i]) {
      conv(block.in, block.middle, 1);
      side /= block.stride;
      conv(1, block.middle, block.kernel);
      if (block.use_se) sum += 2 * static_cast<double>(block.middle * (block.middle / kSqueeze));
      conv(block.middle, block.out, 1);
    }
    sides[i] = side;
  }
  conv(sizes.stages.back().back().out, sizes.last, 1);
  const std::array<int64_t, kNumStages> channels = sizes.out_channels();
  for (size_t i = 0; i < kNumStages; ++i) {
    side = sides[i];
    conv(channels[i], options.neck_channels, 1);
    conv(options.neck_channels, options.neck_channels / kNeckParts, 3);
  }
  const int64_t width = options.neck_channels / kHeadNarrowing;
  for (int head = 0; head < 2; ++head) {
    side = sides[0];
    conv(options.neck_channels, width, 3);
    conv(width, width, 2);  // of every old pixel
    side *= 2;
    conv(width, 1, 2);
  }
  return sum;
}

}  // namespace assay::ocr_det
