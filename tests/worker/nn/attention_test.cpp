#include "nn/attention.h"

#include <torch/script.h>
#include <torch/utils.h>

#include "fused_check.h"

namespace assay {
namespace {

struct AttentionShape {
  int64_t batch, length, width, heads;
};
// Less than a block, exactly one and two, parts of blocks, heads of 5, 16, 24, 64 and 80.
const std::vector<AttentionShape> kAttentionShapes = {{2, 7, 10, 2},   {1, 64, 32, 2},  {2, 128, 64, 1}, {1, 65, 48, 2},
                                                      {3, 100, 24, 1}, {1, 200, 80, 1}, {1, 1, 16, 1}};

std::vector<torch::Tensor> attention_inputs(const AttentionShape& s) {
  torch::manual_seed(11);
  return {torch::randn({s.batch, s.length, 3 * s.width}, torch::kDouble) * 1.5,
          torch::randn({3 * s.width}, torch::kDouble)};
}

TEST(Attention, EqualsTheSeparateOperators) {
  for (const AttentionShape& shape : kAttentionShapes) {
    for (const bool causal : {false, true}) {
      for (const bool masked : {false, true}) {
        AttentionOptions options{.num_heads = shape.heads, .causal = causal, .key_mask = {}, .dropout = 0};
        torch::manual_seed(4);
        if (masked) options.key_mask = torch::rand({shape.batch, shape.length}) < 0.7;
        expect_same_pass(
            [&](const auto& in) { return attention(in[0], in[1], options); },
            [&](const auto& in) { return plain_attention(in[0], in[1], options); }, attention_inputs(shape),
            "length " + std::to_string(shape.length) + (causal ? " causal" : "") + (masked ? " mask" : ""));
      }
    }
  }
}

// Prefixes inside a block, at its border, beyond the first block, nothing and everything.
TEST(Attention, ShowsThePrefixToAll) {
  for (const AttentionShape& shape : kAttentionShapes) {
    for (const int64_t first : {int64_t{0}, int64_t{3}, int64_t{64}, int64_t{70}, shape.length}) {
      AttentionOptions options{.num_heads = shape.heads, .causal = true};
      options.prefix = (torch::arange(shape.batch) * 5 + first).clamp_max(shape.length);
      expect_same_pass([&](const auto& in) { return attention(in[0], in[1], options); },
                       [&](const auto& in) { return plain_attention(in[0], in[1], options); }, attention_inputs(shape),
                       "length " + std::to_string(shape.length) + " prefix " + std::to_string(first));
    }
  }
  // By hand: with values that count the keys, a query's mean tells whom it sees.
  torch::Tensor qkv = torch::zeros({1, 6, 3});
  qkv.select(2, 2).copy_(torch::arange(6).unsqueeze(0));
  const torch::Tensor seen =
      attention(qkv, torch::zeros({3}), {.num_heads = 1, .causal = true, .prefix = torch::tensor({3})});
  EXPECT_TRUE(torch::allclose(seen.flatten(), torch::tensor({1.0F, 1.0F, 1.0F, 1.5F, 2.0F, 2.5F})));
}

TEST(Attention, MatchesFiniteDifferences) {
  AttentionOptions options{.num_heads = 2, .causal = true, .key_mask = torch::ones({2, 5}, torch::kBool), .dropout = 0};
  options.key_mask[1][2] = false;
  expect_finite_differences([&](const auto& in) { return attention(in[0], in[1], options); },
                            attention_inputs({2, 5, 6, 2}));
  options.prefix = torch::tensor({0, 3});
  expect_finite_differences([&](const auto& in) { return attention(in[0], in[1], options); },
                            attention_inputs({2, 5, 6, 2}));
}

// The mask is the same function of the seed in both passes and at every evaluation.
TEST(Attention, MatchesFiniteDifferencesUnderDropout) {
  const AttentionOptions options{.num_heads = 2, .causal = false, .key_mask = {}, .dropout = 0.4};
  expect_finite_differences(
      [&](const auto& in) {
        torch::manual_seed(123);
        return attention(in[0], in[1], options);
      },
      attention_inputs({2, 5, 6, 2}));
}

// The same seed drops the same weights, so that a mask does not depend on the precision.
TEST(Attention, DropsWhatTheSeparateOperatorsDrop) {
  for (const AttentionShape& shape : kAttentionShapes) {
    for (const uint64_t stream : {0, 1}) {
      const AttentionOptions options{
          .num_heads = shape.heads, .causal = true, .dropout = 0.3, .dropout_stream = stream};
      const auto seeded = [&](auto function) {
        return [&options, function](const std::vector<torch::Tensor>& in) {
          torch::manual_seed(123);
          return function(in[0], in[1], options);
        };
      };
      expect_same_pass(seeded(attention), seeded(plain_attention), attention_inputs(shape),
                       "length " + std::to_string(shape.length) + " stream " + std::to_string(stream));
    }
  }
}

// Values of 1 make the result the sum of the weights that stayed, over the probability to stay.
TEST(Attention, KeepsTheMeanUnderDropoutAndFollowsTheGenerator) {
  const AttentionOptions options{.num_heads = 2, .causal = false, .key_mask = {}, .dropout = 0.25};
  torch::Tensor qkv = torch::zeros({4, 256, 24});
  qkv.narrow(2, 16, 8).fill_(1);
  const auto draw = [&](uint64_t seed) {
    torch::manual_seed(seed);
    return attention(qkv, torch::zeros({24}), options);
  };
  const torch::Tensor y = draw(1);
  // 2048 sums of 256 weights of 1/256: deviation sqrt(0.25 / 0.75 / 256) = 0.036 each.
  EXPECT_NEAR(y.mean().item<double>(), 1.0, 0.004);
  const torch::Tensor sums = y.index({torch::indexing::Slice(), torch::indexing::Slice(), torch::tensor({0, 4})});
  EXPECT_NEAR(sums.std().item<double>(), 0.036, 0.004);
  EXPECT_TRUE(y.equal(draw(1)));
  EXPECT_FALSE(y.equal(draw(2)));
  torch::manual_seed(1);
  const torch::Tensor first = attention(qkv, torch::zeros({24}), options);
  EXPECT_FALSE(first.equal(attention(qkv, torch::zeros({24}), options))) << "two layers drop the same";
}

TEST(Attention, GivesNothingToAQueryThatSeesNothing) {
  AttentionOptions options{
      .num_heads = 1, .causal = false, .key_mask = torch::zeros({1, 70}, torch::kBool), .dropout = 0};
  const std::vector<torch::Tensor> pass = pass_of([&](const auto& in) { return attention(in[0], in[1], options); },
                                                  attention_inputs({1, 70, 8, 1}), torch::kFloat);
  for (const torch::Tensor& value : pass) EXPECT_EQ(value.abs().max().item<double>(), 0);
}

TEST(Attention, DoesNotOverflowWithLargeScores) {
  const AttentionOptions options{.num_heads = 1, .causal = true, .key_mask = {}, .dropout = 0};
  std::vector<torch::Tensor> inputs = attention_inputs({1, 130, 16, 1});
  inputs[0] *= 100;
  const auto fused = pass_of([&](const auto& in) { return attention(in[0], in[1], options); }, inputs, torch::kFloat);
  const auto exact =
      pass_of([&](const auto& in) { return plain_attention(in[0], in[1], options); }, inputs, torch::kDouble);
  EXPECT_TRUE(fused[1].isfinite().all().item<bool>());
  EXPECT_LT((fused[0] - exact[0]).abs().max().item<double>() / exact[0].abs().max().item<double>(), 1e-3);
}

TEST(Attention, KeepsABrokenValueVisible) {
  const AttentionOptions options{.num_heads = 1, .causal = true, .key_mask = {}, .dropout = 0};
  torch::Tensor qkv = torch::ones({1, 70, 48});
  qkv[0][66][3] = NAN;  // of a query
  const torch::Tensor y = attention(qkv, torch::zeros({48}), options);
  EXPECT_TRUE(y[0][66].isnan().all().item<bool>());
  EXPECT_FALSE(y[0][65].isnan().any().item<bool>());
}

TEST(Attention, DoesNotDependOnTheNumberOfThreads) {
  const AttentionOptions options{.num_heads = 4, .causal = true, .key_mask = {}, .dropout = 0.1};
  expect_same_on_any_threads(
      [&](const auto& in) {
        torch::manual_seed(3);
        return attention(in[0], in[1], options);
      },
      attention_inputs({2, 100, 64, 4}));
}

TEST(Attention, UsesLibtorchForOtherTypes) {
  const AttentionOptions options{.num_heads = 2, .causal = true, .key_mask = {}, .dropout = 0};
  const torch::Tensor qkv = torch::randn({1, 9, 24}), bias = torch::zeros({24});
  const torch::Tensor y = attention(qkv.to(torch::kBFloat16), bias.to(torch::kBFloat16), options);
  EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
  EXPECT_LT((y.to(torch::kFloat) - attention(qkv, bias, options)).abs().max().item<double>(), 0.05);
}

}  // namespace
}  // namespace assay
