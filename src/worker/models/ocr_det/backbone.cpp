#include "models/ocr_det/backbone.h"

#include <torch/nn/init.h>
#include <torch/nn/modules/container/modulelist.h>

#include <algorithm>
#include <string>

#include "nn/conv.h"
#include "nn/norm_act.h"

namespace assay::ocr_det {

namespace {

constexpr int64_t kDivisor = 8;     // widths are multiples of it
constexpr int64_t kStemWidth = 16;  // all at scale 1
constexpr int64_t kLastWidth = 960;

struct BlockPlan {
  int64_t kernel, middle, out;
  bool use_se;
  Activation activation;
  int64_t stride;
};
// Table 1 of the paper. A stride of 2 begins a stage, except the first one: 1/2 of the image is not a result.
constexpr BlockPlan kBlocks[] = {
    {3, 16, 16, false, Activation::Relu, 1},       {3, 64, 24, false, Activation::Relu, 2},
    {3, 72, 24, false, Activation::Relu, 1},       {5, 72, 40, true, Activation::Relu, 2},
    {5, 120, 40, true, Activation::Relu, 1},       {5, 120, 40, true, Activation::Relu, 1},
    {3, 240, 80, false, Activation::HardSwish, 2}, {3, 200, 80, false, Activation::HardSwish, 1},
    {3, 184, 80, false, Activation::HardSwish, 1}, {3, 184, 80, false, Activation::HardSwish, 1},
    {3, 480, 112, true, Activation::HardSwish, 1}, {3, 672, 112, true, Activation::HardSwish, 1},
    {5, 672, 160, true, Activation::HardSwish, 2}, {5, 960, 160, true, Activation::HardSwish, 1},
    {5, 960, 160, true, Activation::HardSwish, 1}};
constexpr size_t kFirstCut = 3;  // the block that begins the second stage

// The nearest multiple, but never less than nine tenths.
int64_t scaled(double scale, int64_t width) {
  const double wanted = scale * static_cast<double>(width);
  const int64_t rounded = std::max(kDivisor, static_cast<int64_t>(wanted + kDivisor / 2.0) / kDivisor * kDivisor);
  return static_cast<double>(rounded) < 0.9 * wanted ? rounded + kDivisor : rounded;
}

// libtorch has no kernels for activations in half precision on the CPU, and these tensors are tiny.
torch::Tensor at_least_float(const torch::Tensor& x) { return x.element_size() < 4 ? x.to(torch::kFloat) : x; }

}  // namespace

ConvLayerImpl::ConvLayerImpl(const Options& options) : activation_(options.activation) {
  conv_ = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(options.in, options.out, options.kernel)
                                                        .stride(options.stride)
                                                        .padding(options.kernel / 2)
                                                        .groups(options.groups)
                                                        .bias(false)));
  bn_ = register_module("bn", torch::nn::BatchNorm2d(options.out));
  torch::nn::init::kaiming_normal_(conv_->weight);
}

torch::Tensor ConvLayerImpl::forward(const torch::Tensor& x, const torch::Tensor& residual) {
  const torch::Tensor y =
      norm_act(*bn_, convolve(*conv_, x), {.residual = residual, .relu = activation_ == Activation::Relu});
  return activation_ == Activation::HardSwish ? at::hardswish(y) : y;
}

SqueezeExciteImpl::SqueezeExciteImpl(int64_t channels) {
  conv1_ = register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, channels / kSqueeze, 1)));
  conv2_ = register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(channels / kSqueeze, channels, 1)));
}

torch::Tensor SqueezeExciteImpl::forward(const torch::Tensor& x) {
  const torch::Tensor mean = x.mean({2, 3}, /*keepdim=*/true);
  const torch::Tensor squeezed = at_least_float(conv1_->forward(mean)).relu();
  return x * at::hardsigmoid(at_least_float(conv2_->forward(squeezed)));
}

BottleneckImpl::BottleneckImpl(const BlockSize& s) : shortcut_(s.stride == 1 && s.in == s.out) {
  const auto layer = [](const ConvLayerImpl::Options& options) { return ConvLayer(options); };
  expand_ = register_module("expand_conv", layer({.in = s.in, .out = s.middle, .activation = s.activation}));
  each_ = register_module("bottleneck_conv", layer({.in = s.middle,
                                                    .out = s.middle,
                                                    .kernel = s.kernel,
                                                    .stride = s.stride,
                                                    .groups = s.middle,
                                                    .activation = s.activation}));
  if (s.use_se) se_ = register_module("mid_se", SqueezeExcite(s.middle));
  linear_ = register_module("linear_conv", layer({.in = s.middle, .out = s.out}));
}

torch::Tensor BottleneckImpl::forward(const torch::Tensor& x) {
  torch::Tensor y = each_->forward(expand_->forward(x));
  if (se_) y = se_->forward(y);
  return linear_->forward(y, shortcut_ ? x : torch::Tensor());
}

BackboneSizes backbone_sizes(const BackboneOptions& options) {
  BackboneSizes sizes;
  sizes.stem = scaled(options.scale, kStemWidth);
  sizes.last = scaled(options.scale, kLastWidth);
  int64_t in = sizes.stem;
  size_t stage = 0;
  for (size_t i = 0; i < std::size(kBlocks); ++i) {
    const BlockPlan& plan = kBlocks[i];
    if (plan.stride == 2 && i >= kFirstCut) ++stage;
    const int64_t out = scaled(options.scale, plan.out);
    sizes.stages.at(stage).push_back({.in = in,
                                      .middle = scaled(options.scale, plan.middle),
                                      .out = out,
                                      .kernel = plan.kernel,
                                      .stride = plan.stride,
                                      .use_se = plan.use_se && options.use_se,
                                      .activation = plan.activation});
    in = out;
  }
  return sizes;
}

std::array<int64_t, kNumStages> BackboneSizes::out_channels() const {
  std::array<int64_t, kNumStages> channels{};
  for (size_t i = 0; i < kNumStages; ++i) channels[i] = stages[i].back().out;
  channels.back() = last;
  return channels;
}

BackboneImpl::BackboneImpl(const BackboneOptions& options) {
  const BackboneSizes sizes = backbone_sizes(options);
  const auto layer = [](const ConvLayerImpl::Options& o) { return ConvLayer(o); };
  conv_ = register_module(
      "conv", layer({.in = 3, .out = sizes.stem, .kernel = 3, .stride = 2, .activation = Activation::HardSwish}));
  for (size_t i = 0; i < kNumStages; ++i) {
    torch::nn::ModuleList stage;
    for (const BlockSize& size : sizes.stages[i]) {
      stages_[i].push_back(Bottleneck(size));
      stage->push_back(stages_[i].back());
    }
    if (i + 1 == kNumStages) {
      last_ = layer({.in = sizes.stages[i].back().out, .out = sizes.last, .activation = Activation::HardSwish});
      stage->push_back(last_);
    }
    register_module("stage" + std::to_string(i), stage);
  }
}

std::array<torch::Tensor, kNumStages> BackboneImpl::forward(const torch::Tensor& image) {
  torch::Tensor x = conv_->forward(image);
  std::array<torch::Tensor, kNumStages> results;
  for (size_t i = 0; i < kNumStages; ++i) {
    for (Bottleneck& block : stages_[i]) x = block->forward(x);
    results[i] = x;
  }
  results.back() = last_->forward(x);
  return results;
}

}  // namespace assay::ocr_det
