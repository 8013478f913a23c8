#include "nn/conv_transpose.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include "base/error.h"
#include "fused_check.h"

namespace assay {
namespace {

TEST(ConvTranspose, ComputesWhatLibtorchComputes) {
  for (const auto& [in, out, kernel] : {std::array<int64_t, 3>{6, 4, 2}, {5, 1, 2}, {3, 7, 3}}) {
    torch::manual_seed(3);
    torch::nn::ConvTranspose2d conv(torch::nn::ConvTranspose2dOptions(in, out, kernel).stride(kernel));
    conv->to(torch::kDouble);
    for (const auto layout : {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
      conv->weight.set_data(conv->weight.contiguous(layout));
      torch::Tensor x = torch::randn({2, in, 5, 4}, torch::kDouble).contiguous(layout).requires_grad_();
      const torch::Tensor expected = conv->forward(x), found = convolve_transposed(*conv, x);
      const torch::Tensor weights = torch::randn(expected.sizes(), torch::kDouble);
      EXPECT_TRUE(torch::allclose(found, expected, 1e-12, 1e-12)) << in << " to " << out;
      EXPECT_TRUE(found.is_contiguous(torch::MemoryFormat::ChannelsLast));
      const std::vector<torch::Tensor> of = {x, conv->weight, conv->bias};
      const auto wanted = torch::autograd::grad({(expected * weights).sum()}, of);
      const auto gradients = torch::autograd::grad({(found * weights).sum()}, of);
      for (size_t i = 0; i < of.size(); ++i) {
        EXPECT_TRUE(torch::allclose(gradients[i], wanted[i], 1e-11, 1e-11)) << in << " to " << out << ", " << i;
      }
      const torch::NoGradGuard evaluation;
      EXPECT_TRUE(convolve_transposed(*conv, x).equal(conv->forward(x)));
    }
  }
}

TEST(ConvTranspose, MatchesFiniteDifferences) {
  torch::manual_seed(4);
  expect_finite_differences(
      [](const auto& x) {
        torch::nn::ConvTranspose2d conv(torch::nn::ConvTranspose2dOptions(3, 2, 2).stride(2));
        conv->weight = x[1];
        conv->bias = x[2];
        return convolve_transposed(*conv, x[0]);
      },
      {torch::randn({2, 3, 3, 2}, torch::kDouble), torch::randn({3, 2, 2, 2}, torch::kDouble),
       torch::randn({2}, torch::kDouble)});
}

TEST(ConvTranspose, RejectsPatchesThatOverlap) {
  torch::nn::ConvTranspose2d conv(torch::nn::ConvTranspose2dOptions(2, 2, 3).stride(2));
  EXPECT_THROW(convolve_transposed(*conv, torch::zeros({1, 2, 4, 4})), InternalError);
}

}  // namespace
}  // namespace assay
