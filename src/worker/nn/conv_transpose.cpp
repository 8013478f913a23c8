#include "nn/conv_transpose.h"

#include <ATen/record_function.h>

#include "base/error.h"
#include "nn/linear.h"

namespace assay {

torch::Tensor convolve_transposed(torch::nn::ConvTranspose2dImpl& conv, const torch::Tensor& x) {
  if (!torch::GradMode::is_enabled()) return conv.forward(x);
  const torch::Tensor& weight = conv.weight;  // [in, out, s, s]
  const int64_t s = weight.size(2), out = weight.size(1);
  for (const int64_t side : {0, 1}) {
    ASSAY_CHECK(conv.options.kernel_size()->at(side) == s && conv.options.stride()->at(side) == s,
                "the kernel must be square and as large as the stride");
  }
  ASSAY_CHECK(conv.options.groups() == 1 && conv.options.bias(), "groups, or no bias");
  RECORD_FUNCTION("assay::convolve_transposed", std::vector<c10::IValue>());
  const int64_t count = x.size(0), height = x.size(2), width = x.size(3);
  const torch::Tensor matrix = weight.permute({0, 2, 3, 1}).reshape({weight.size(0), s * s * out});
  const torch::Tensor patches = linear(x.permute({0, 2, 3, 1}), matrix, WeightLayout::InOut);
  const torch::Tensor rows = patches.view({count, height, width, s, s, out}).transpose(2, 3);
  return (rows.reshape({count, height * s, width * s, out}) + conv.bias).permute({0, 3, 1, 2});
}

}  // namespace assay
