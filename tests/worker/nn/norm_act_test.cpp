#include "nn/norm_act.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/utils.h>

#include <cmath>

#include "fused_check.h"
#include "kernels/norm_kernels.h"

namespace assay {
namespace {

constexpr auto kLast = torch::MemoryFormat::ChannelsLast;

struct Shape {
  int64_t batch, channels, height, width;
};
// Few and many channels, odd numbers of them and of rows, one row a piece, and one that is written past the caches.
const std::vector<Shape> kShapes = {{4, 1, 5, 5},   {3, 3, 7, 5},    {2, 16, 14, 14}, {5, 17, 3, 3},  {7, 64, 4, 4},
                                    {3, 200, 3, 3}, {2, 4096, 1, 2}, {1, 130, 9, 1},  {2, 64, 96, 96}};

torch::nn::BatchNorm2d make_norm(int64_t channels, torch::ScalarType type) {
  torch::nn::BatchNorm2d norm(channels);
  norm->to(type);
  const torch::NoGradGuard no_grad;
  norm->weight.uniform_(0.5, 1.5);
  norm->bias.uniform_(-0.5, 0.5);
  return norm;
}

// Everything that one forward and backward pass gives.
struct Pass {
  std::vector<std::pair<std::string, torch::Tensor>> values;
};

Pass run(bool fused, const Shape& s, torch::ScalarType type, bool relu, bool with_residual) {
  torch::manual_seed(17);
  torch::nn::BatchNorm2d norm = make_norm(s.channels, type);
  const std::vector<int64_t> shape = {s.batch, s.channels, s.height, s.width};
  const torch::Tensor x = torch::randn(shape, type).mul_(2).add_(0.7).contiguous(kLast).requires_grad_(true);
  torch::Tensor residual;
  if (with_residual) residual = torch::randn(shape, type).contiguous(kLast).requires_grad_(true);
  torch::Tensor y;
  if (fused) {
    y = norm_act(*norm, x, {.residual = residual, .relu = relu});
    EXPECT_NE(y.grad_fn()->name().find("NormAct"), std::string::npos) << y.grad_fn()->name();
  } else {
    y = norm->forward(x);
    if (with_residual) y = y + residual;
    if (relu) y = y.relu();
  }
  y.backward(torch::randn(shape, type));
  Pass pass{{{"y", y.detach()},
             {"dx", x.grad()},
             {"dweight", norm->weight.grad()},
             {"dbias", norm->bias.grad()},
             {"mean", norm->running_mean},
             {"variance", norm->running_var},
             {"count", norm->num_batches_tracked.to(type)}}};
  if (with_residual) pass.values.emplace_back("dresidual", residual.grad());
  return pass;
}

void expect_close(const Pass& a, const Pass& b, double tolerance, const std::string& where) {
  ASSERT_EQ(a.values.size(), b.values.size());
  for (size_t i = 0; i < a.values.size(); ++i) {
    const torch::Tensor& expected = b.values[i].second;
    const double scale = std::max(expected.abs().max().item<double>(), 1e-3);
    EXPECT_LT((a.values[i].second - expected).abs().max().item<double>() / scale, tolerance)
        << b.values[i].first << " " << where;
  }
}

TEST(NormAct, EqualsTheSeparateOperators) {
  for (const Shape& shape : kShapes) {
    for (const bool relu : {false, true}) {
      for (const bool residual : {false, true}) {
        const std::string where =
            "channels " + std::to_string(shape.channels) + (relu ? " relu" : "") + (residual ? " residual" : "");
        expect_close(run(true, shape, torch::kDouble, relu, residual),
                     run(false, shape, torch::kDouble, relu, residual), 1e-11, where);
        expect_close(run(true, shape, torch::kFloat, relu, residual), run(false, shape, torch::kFloat, relu, residual),
                     2e-5, where);
      }
    }
  }
}

TEST(NormAct, MatchesFiniteDifferences) {
  torch::manual_seed(3);
  torch::nn::BatchNorm2d norm = make_norm(3, torch::kDouble);
  const torch::Tensor weights = torch::randn({2, 3, 3, 2}, torch::kDouble);
  const torch::Tensor residual = torch::randn({2, 3, 3, 2}, torch::kDouble).contiguous(kLast).requires_grad_(true);
  const torch::Tensor x = torch::randn({2, 3, 3, 2}, torch::kDouble).contiguous(kLast).requires_grad_(true);
  const auto loss = [&] { return (norm_act(*norm, x, {.residual = residual, .relu = true}) * weights).sum(); };
  loss().backward();
  for (const auto& [name, input] : {std::pair("x", x), std::pair("residual", residual),
                                    std::pair("weight", norm->weight), std::pair("bias", norm->bias)}) {
    const torch::NoGradGuard no_grad;
    auto* values = input.data_ptr<double>();
    const auto* gradient =
        input.grad().contiguous(input.dim() == 4 ? kLast : torch::MemoryFormat::Contiguous).data_ptr<double>();
    for (int64_t i = 0; i < input.numel(); ++i) {
      constexpr double kStep = 1e-6;
      const double before = values[i];
      values[i] = before + kStep;
      const double above = loss().item<double>();
      values[i] = before - kStep;
      const double below = loss().item<double>();
      values[i] = before;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-6) << name << " " << i;
    }
  }
}

TEST(NormAct, MatchesFiniteDifferencesWithoutAResidual) {
  for (const bool relu : {false, true}) {
    torch::manual_seed(4);
    expect_finite_differences(
        [&](const std::vector<torch::Tensor>& in) {
          torch::nn::BatchNorm2d norm(3);
          norm->to(torch::kDouble);
          norm->weight = in[1];
          norm->bias = in[2];
          const torch::Tensor y = norm_act(*norm, in[0], {.residual = {}, .relu = relu});
          if (y.requires_grad()) {
            EXPECT_NE(y.grad_fn()->name().find("NormAct"), std::string::npos) << y.grad_fn()->name();
          }
          return y;
        },
        {torch::randn({2, 3, 3, 2}, torch::kDouble).contiguous(kLast), torch::rand({3}, torch::kDouble) + 0.5,
         torch::randn({3}, torch::kDouble)});
  }
}

TEST(NormAct, KeepsFarMeansFromCancelling) {
  torch::manual_seed(5);
  const torch::Tensor x = (torch::randn({8, 16, 10, 10}, torch::kDouble) + 1000).to(torch::kFloat).contiguous(kLast);
  torch::nn::BatchNorm2d norm = make_norm(16, torch::kFloat);
  norm_act(*norm, x, {.residual = {}, .relu = false});
  const torch::Tensor exact = x.to(torch::kDouble).var({0, 2, 3});
  const torch::Tensor ours = (norm->running_var.to(torch::kDouble) - 0.9) / 0.1;
  EXPECT_LT((ours - exact).abs().max().item<double>(), 1e-4);
}

TEST(NormAct, DoesNotDependOnTheNumberOfThreads) {
  const int before = at::get_num_threads();
  const Shape shape{16, 16, 14, 14};
  at::set_num_threads(1);
  const Pass one = run(true, shape, torch::kFloat, true, true);
  at::set_num_threads(4);
  const Pass four = run(true, shape, torch::kFloat, true, true);
  at::set_num_threads(before);
  for (size_t i = 0; i < one.values.size(); ++i) {
    EXPECT_TRUE(one.values[i].second.equal(four.values[i].second)) << one.values[i].first;
  }
}

TEST(NormAct, KeepsABrokenValueVisible) {
  torch::nn::BatchNorm2d norm = make_norm(4, torch::kFloat);
  torch::Tensor x = torch::ones({2, 4, 3, 3}).contiguous(kLast);
  x[0][1][0][0] = NAN;
  const torch::Tensor y = norm_act(*norm, x, {.residual = {}, .relu = true});
  EXPECT_TRUE(y.select(1, 1).isnan().all().item<bool>());
  EXPECT_FALSE(y.select(1, 0).isnan().any().item<bool>());
}

TEST(NormAct, UsesLibtorchInEvaluationAndForOtherLayouts) {
  torch::manual_seed(9);
  torch::nn::BatchNorm2d norm = make_norm(16, torch::kFloat);
  const torch::Tensor x = torch::randn({2, 16, 5, 5}).contiguous(kLast).requires_grad_(true);
  const torch::Tensor plain = x.detach().contiguous().requires_grad_(true);
  EXPECT_EQ(norm_act(*norm, plain, {.residual = {}, .relu = true}).grad_fn()->name(), "ReluBackward0");
  norm->eval();
  const torch::Tensor y = norm_act(*norm, x, {.residual = x, .relu = true});
  EXPECT_EQ(y.grad_fn()->name(), "ReluBackward0");
  EXPECT_TRUE(torch::allclose(y, (norm->forward(x) + x).relu()));
}

}  // namespace
}  // namespace assay
