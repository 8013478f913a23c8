// Convolution without bias followed by batch normalisation: what convolutional networks are made of. Names of
// parameters are `conv.*` and `norm.*`.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include "nn/norm_act.h"
#include "nn/tensor_parallel.h"

namespace assay {

class ConvNormImpl : public torch::nn::Module {
 public:
  struct Options {
    int64_t in_channels = 1;
    int64_t out_channels = 1;
    int64_t kernel = 3;  // odd; the padding keeps the size at stride 1
    int64_t stride = 1;
  };
  // Weights from a normal distribution scaled to the fan-out (He et al. 2015), drawn from the default generator.
  explicit ConvNormImpl(const Options& options);
  torch::Tensor forward(const torch::Tensor& input) { return forward(input, {.residual = {}, .relu = false}); }
  // With what follows it, in one operator. Where the convolution has a part of the inputs (nn/tensor_parallel.h), the
  // results of all processes are added up before the normalisation.
  torch::Tensor forward(const torch::Tensor& input, const NormActOptions& options,
                        const TensorParallel& parts = TensorParallel());

 private:
  torch::nn::Conv2d conv_{nullptr};
  torch::nn::BatchNorm2d norm_{nullptr};
};
TORCH_MODULE(ConvNorm);

}  // namespace assay
