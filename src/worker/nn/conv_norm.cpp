#include "nn/conv_norm.h"

#include <torch/nn/init.h>

namespace assay {

ConvNormImpl::ConvNormImpl(const Options& options) {
  conv_ = register_module(
      "conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(options.in_channels, options.out_channels, options.kernel)
                                    .stride(options.stride)
                                    .padding(options.kernel / 2)
                                    .bias(false)));
  norm_ = register_module("norm", torch::nn::BatchNorm2d(options.out_channels));
  torch::nn::init::kaiming_normal_(conv_->weight, 0, torch::kFanOut, torch::kReLU);
}

torch::Tensor ConvNormImpl::forward(const torch::Tensor& input, const NormActOptions& options,
                                    const TensorParallel& parts) {
  return norm_act(*norm_, parts.leave(conv_->forward(input)), options);
}

}  // namespace assay
