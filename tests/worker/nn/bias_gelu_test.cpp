#include "nn/bias_gelu.h"

#include <torch/nn/functional/activation.h>

#include <cmath>

#include "fused_check.h"

namespace assay {
namespace {

std::vector<torch::Tensor> gelu_inputs(int64_t rows, int64_t width) {
  torch::manual_seed(31);
  return {torch::randn({rows, width}, torch::kDouble) * 3, torch::randn({width}, torch::kDouble)};
}

TEST(BiasGelu, EqualsTheSeparateOperators) {
  for (const Gelu kind : {Gelu::Erf, Gelu::Tanh}) {
    for (const int64_t width : {1, 5, 16, 33, 256}) {
      expect_same_pass([&](const auto& in) { return bias_gelu(in[0], in[1], kind); },
                       [&](const auto& in) { return torch::gelu(in[0] + in[1], kind == Gelu::Tanh ? "tanh" : "none"); },
                       gelu_inputs(70, width), "width " + std::to_string(width));
    }
  }
}

TEST(BiasGelu, EqualsTheSeparateOperatorsWithALinearLayer) {
  for (const WeightLayout layout : {WeightLayout::OutIn, WeightLayout::InOut}) {
    std::vector<torch::Tensor> inputs = gelu_inputs(40, 33);
    inputs.push_back(torch::randn({33, 20}, torch::kDouble));
    if (layout == WeightLayout::OutIn) inputs[2] = inputs[2].t().contiguous();
    expect_same_pass([&](const auto& in) { return gelu_linear(in[0], in[1], Gelu::Tanh, in[2], layout); },
                     [&](const auto& in) {
                       const torch::Tensor made = torch::gelu(in[0] + in[1], "tanh");
                       return torch::matmul(made, layout == WeightLayout::OutIn ? in[2].t() : in[2]);
                     },
                     inputs, "linear");
    expect_finite_differences(
        [&](const auto& in) { return gelu_linear(in[0], in[1], Gelu::Erf, in[2], layout); },
        {inputs[0].narrow(0, 0, 2).narrow(1, 0, 3).contiguous(), inputs[1].narrow(0, 0, 3).contiguous(),
         layout == WeightLayout::OutIn ? inputs[2].narrow(1, 0, 3).contiguous()
                                       : inputs[2].narrow(0, 0, 3).contiguous()});
  }
}

TEST(BiasGelu, MatchesFiniteDifferences) {
  for (const Gelu kind : {Gelu::Erf, Gelu::Tanh}) {
    expect_finite_differences([&](const auto& in) { return bias_gelu(in[0], in[1], kind); }, gelu_inputs(3, 7));
  }
}

// Of the formula, in float from double: the tails of both sides, where a careless form cancels or overflows.
TEST(BiasGelu, FollowsTheFormulaEverywhere) {
  const torch::Tensor x = torch::linspace(-30, 30, 4001);
  const torch::Tensor none = torch::zeros({4001});
  for (const Gelu kind : {Gelu::Erf, Gelu::Tanh}) {
    const torch::Tensor y = bias_gelu(x, none, kind);
    for (int64_t i = 0; i < x.numel(); ++i) {
      const double v = x.data_ptr<float>()[i];
      const double exact = kind == Gelu::Erf
                               ? 0.5 * v * std::erfc(-v / std::sqrt(2))
                               : v / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
      ASSERT_NEAR(y.data_ptr<float>()[i], exact, 1e-6 + 1e-6 * std::abs(exact)) << v;
    }
  }
}

TEST(BiasGelu, KeepsABrokenValueVisible) {
  for (const Gelu kind : {Gelu::Erf, Gelu::Tanh}) {
    torch::Tensor x = torch::ones({2, 20});
    x[1][18] = NAN;
    const torch::Tensor y = bias_gelu(x, torch::zeros({20}), kind);
    EXPECT_TRUE(y[1][18].isnan().item<bool>());
    EXPECT_EQ(y.isnan().sum().item<int64_t>(), 1);
  }
}

TEST(BiasGelu, DoesNotDependOnTheNumberOfThreads) {
  expect_same_on_any_threads([](const auto& in) { return bias_gelu(in[0], in[1], Gelu::Tanh); }, gelu_inputs(300, 100));
}

}  // namespace
}  // namespace assay
