#include "nn/linear_cross_entropy.h"

#include <torch/nn/functional/loss.h>

#include "base/error.h"
#include "fused_check.h"

namespace assay {
namespace {

std::vector<torch::Tensor> vocabulary_inputs(int64_t rows, int64_t width, int64_t classes) {
  torch::manual_seed(51);
  return {torch::randn({rows, width}, torch::kDouble) * 2, torch::randn({classes, width}, torch::kDouble),
          torch::randn({classes}, torch::kDouble)};
}

torch::Tensor random_labels(int64_t rows, int64_t classes, bool some_ignored) {
  torch::manual_seed(52);
  torch::Tensor label = torch::randint(classes, {rows});
  if (some_ignored) label.masked_fill_(torch::rand({rows}) < 0.4, kIgnoredLabel);
  return label;
}

// The last shape makes three groups in double.
TEST(LinearCrossEntropy, EqualsTheSeparateOperators) {
  for (const auto& [rows, classes] :
       {std::pair(1, 2), std::pair(9, 37), std::pair(70, 1000), std::pair(40, 1'000'003)}) {
    for (const bool ignored : {false, true}) {
      const torch::Tensor label = random_labels(rows, classes, ignored && rows > 1);
      expect_same_pass(
          [&](const auto& in) {
            return linear_cross_entropy(in[0], {in[1], in[2]}, label);
          },
          [&](const auto& in) {
            return torch::nn::functional::cross_entropy(torch::linear(in[0], in[1], in[2]), label);
          },
          vocabulary_inputs(rows, 6, classes), "classes " + std::to_string(classes));
    }
  }
}

TEST(LinearCrossEntropy, MatchesFiniteDifferences) {
  const torch::Tensor label = torch::tensor({int64_t{3}, kIgnoredLabel, int64_t{0}, int64_t{4}});
  expect_finite_differences(
      [&](const auto& in) {
        return linear_cross_entropy(in[0], {in[1], in[2]}, label);
      },
      vocabulary_inputs(4, 3, 5));
}

// The engine divides by the number of micro-batches, and scales losses.
TEST(LinearCrossEntropy, ScalesTheGradientsOfAScaledLoss) {
  const torch::Tensor label = random_labels(12, 30, false);
  expect_same_pass(
      [&](const auto& in) {
        return linear_cross_entropy(in[0], {in[1], {}}, label) * 128.5;
      },
      [&](const auto& in) { return torch::nn::functional::cross_entropy(torch::linear(in[0], in[1]), label) * 128.5; },
      {vocabulary_inputs(12, 8, 30)[0], vocabulary_inputs(12, 8, 30)[1]}, "scaled");
}

// The embedding of a tied table gives a sparse gradient, which the dense one of the last layer takes in.
TEST(LinearCrossEntropy, TakesInTheGradientOfATiedTable) {
  const torch::Tensor tokens = torch::tensor({3, 1, 3, 7}), label = torch::tensor({1, 2, 3, 4});
  const auto gradient = [&](bool fused) {
    torch::manual_seed(53);
    const torch::Tensor table = torch::randn({9, 4}, torch::requires_grad());
    const torch::Tensor x = torch::embedding(table, tokens, -1, false, /*sparse=*/fused);
    (fused ? linear_cross_entropy(x, {table, {}}, label)
           : torch::nn::functional::cross_entropy(torch::linear(x, table), label))
        .backward();
    return table.grad();
  };
  EXPECT_FALSE(gradient(true).is_sparse());
  EXPECT_TRUE(torch::allclose(gradient(true), gradient(false), 1e-5, 1e-6));
}

TEST(LinearCrossEntropy, NamesALabelThatIsNotAClass) {
  const torch::Tensor x = torch::randn({2, 4}, torch::requires_grad()), weight = torch::randn({5, 4});
  for (const int64_t wrong : {5L, -1L}) {
    try {
      linear_cross_entropy(x, {weight, {}}, torch::tensor({int64_t{0}, wrong}));
      FAIL();
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(std::to_string(wrong)), std::string::npos) << error.what();
    }
  }
}

TEST(LinearCrossEntropy, GivesNotANumberWhenNothingCounts) {
  const torch::Tensor x = torch::randn({2, 4}, torch::requires_grad());
  const torch::Tensor loss =
      linear_cross_entropy(x, {torch::randn({5, 4}), {}}, torch::tensor({kIgnoredLabel, kIgnoredLabel}));
  EXPECT_TRUE(loss.isnan().item<bool>());
}

TEST(LinearCrossEntropy, GivesTheSameLossWithoutGradients) {
  const torch::Tensor label = random_labels(20, 50, true);
  const std::vector<torch::Tensor> in = vocabulary_inputs(20, 8, 50);
  const torch::Tensor wanted = linear_cross_entropy(in[0].clone().requires_grad_(true), {in[1], in[2]}, label);
  const torch::NoGradGuard no_grad;
  EXPECT_NEAR(linear_cross_entropy(in[0], {in[1], in[2]}, label).item<double>(), wanted.item<double>(), 1e-12);
}

}  // namespace
}  // namespace assay
