#include "nn/residual_norm.h"

#include <torch/nn/functional/normalization.h>

#include "fused_check.h"

namespace assay {
namespace {

// x, delta, the addend's bias, the normalisation's weight and bias.
std::vector<torch::Tensor> norm_inputs(int64_t rows, int64_t width) {
  torch::manual_seed(21);
  return {torch::randn({2, rows, width}, torch::kDouble) * 2 + 0.5, torch::randn({2, rows, width}, torch::kDouble),
          torch::randn({width}, torch::kDouble), torch::rand({width}, torch::kDouble) + 0.5,
          torch::randn({width}, torch::kDouble)};
}

// Both results side by side, so that both get gradients.
torch::Tensor both(const ResidualNorm& made) { return torch::cat({made.sum, made.normed}, -1); }

torch::Tensor fused_norm(const std::vector<torch::Tensor>& in, double dropout = 0) {
  return both(residual_norm(in[0], {in[1], in[2], dropout}, {in[3], in[4], 1e-5}));
}

TEST(ResidualNorm, EqualsTheSeparateOperators) {
  for (const int64_t width : {5, 16, 31, 48, 200, 768}) {  // of two or three numbers gradients cancel
    for (const int64_t rows : {1, 5, 40}) {
      expect_same_pass([](const auto& in) { return fused_norm(in); },
                       [](const auto& in) {
                         const torch::Tensor sum = in[0] + (in[1] + in[2]);
                         return both({sum, torch::layer_norm(sum, {in[3].size(0)}, in[3], in[4], 1e-5)});
                       },
                       norm_inputs(rows, width), "width " + std::to_string(width));
    }
  }
}

TEST(ResidualNorm, EqualsLibtorchsLayerNormAlone) {
  for (const int64_t width : {7, 64, 100}) {
    std::vector<torch::Tensor> inputs = norm_inputs(9, width);
    inputs.erase(inputs.begin() + 1, inputs.begin() + 3);
    expect_same_pass(
        [](const auto& in) {
          return layer_norm(in[0], {in[1], in[2], 1e-12});
        },
        [](const auto& in) { return torch::layer_norm(in[0], {in[1].size(0)}, in[1], in[2], 1e-12); }, inputs,
        "width " + std::to_string(width));
  }
}

TEST(ResidualNorm, MatchesFiniteDifferences) {
  expect_finite_differences([](const auto& in) { return fused_norm(in); }, norm_inputs(2, 5));
}

TEST(ResidualNorm, MatchesFiniteDifferencesUnderDropout) {
  expect_finite_differences(
      [](const auto& in) {
        torch::manual_seed(8);
        return fused_norm(in, 0.5);
      },
      norm_inputs(2, 5));
}

TEST(ResidualNorm, MatchesFiniteDifferencesOfLayerNormAlone) {
  const std::vector<torch::Tensor> all = norm_inputs(3, 5);
  expect_finite_differences(
      [](const auto& in) {
        return layer_norm(in[0], {in[1], in[2], 1e-5});
      },
      {all[0], all[3], all[4]});
}

// One of the results may not be used.
TEST(ResidualNorm, GivesEachResultAloneItsGradients) {
  for (const bool normed : {false, true}) {
    expect_same_pass(
        [&](const auto& in) {
          const ResidualNorm made = residual_norm(in[0], {in[1], in[2]}, {in[3], in[4], 1e-5});
          return normed ? made.normed : made.sum + 0 * in[3] + 0 * in[4];
        },
        [&](const auto& in) {
          const torch::Tensor sum = in[0] + (in[1] + in[2]);
          return normed ? torch::layer_norm(sum, {in[3].size(0)}, in[3], in[4], 1e-5) : sum + 0 * in[3] + 0 * in[4];
        },
        norm_inputs(3, 20), normed ? "normed" : "sum");
  }
}

TEST(ResidualNorm, DropsTheAddendOnly) {
  torch::manual_seed(6);
  const torch::Tensor x = torch::full({50, 200}, 3.0F), weight = torch::ones({200}), bias = torch::zeros({200});
  const ResidualNorm made = residual_norm(x, {torch::ones({50, 200}), torch::ones({200}), 0.2}, {weight, bias, 1e-5});
  const torch::Tensor dropped = made.sum.eq(3), kept = (made.sum - (3 + 2 / 0.8)).abs().lt(1e-5);
  EXPECT_TRUE(dropped.logical_or(kept).all().item<bool>());
  EXPECT_NEAR(dropped.to(torch::kFloat).mean().item<double>(), 0.2, 0.02);  // 10000 draws: deviation 0.004
}

// Streams are other masks, in the fused operator and where it cannot run, and the same ones there.
TEST(ResidualNorm, DropsOtherElementsPerStreamInEveryPrecision) {
  const auto dropped = [](torch::ScalarType type, uint64_t stream) {
    torch::manual_seed(6);
    const auto filled = [&](double value, at::IntArrayRef shape) { return torch::full(shape, value, type); };
    return residual_norm(filled(0, {9, 100}), {filled(1, {9, 100}), filled(0, {100}), 0.5, stream},
                         {filled(1, {100}), filled(0, {100}), 1e-5})
        .sum.eq(0);
  };
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    EXPECT_TRUE(dropped(type, 0).equal(dropped(torch::kDouble, 0)));
    EXPECT_TRUE(dropped(type, 1).equal(dropped(torch::kDouble, 1)));
    EXPECT_FALSE(dropped(type, 0).equal(dropped(type, 1)));
  }
}

TEST(ResidualNorm, KeepsFarMeansFromCancelling) {
  torch::manual_seed(5);
  const torch::Tensor x = (torch::randn({4, 300}, torch::kDouble) + 1000).to(torch::kFloat);
  const torch::Tensor ones = torch::ones({300}), zeros = torch::zeros({300});
  const torch::Tensor exact =
      torch::layer_norm(x.to(torch::kDouble), {300}, ones.to(torch::kDouble), zeros.to(torch::kDouble), 1e-5);
  EXPECT_LT((layer_norm(x, {ones, zeros, 1e-5}) - exact).abs().max().item<double>(), 2e-4);
}

TEST(ResidualNorm, DoesNotDependOnTheNumberOfThreads) {
  expect_same_on_any_threads([](const auto& in) { return fused_norm(in); }, norm_inputs(150, 96));
}

}  // namespace
}  // namespace assay
