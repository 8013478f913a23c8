#include "nn/head_rotation.h"

#include <cmath>

#include "base/error.h"
#include "fused_check.h"
#include "nn/attention.h"

namespace assay {
namespace {

struct RotationShape {
  int64_t batch, length, heads, num_positions, num_pairs;
  int64_t width() const { return heads * num_positions * 2 * num_pairs; }
};
// Fewer rows than a piece and more, one position a token and three, pairs that fill no vector.
const std::vector<RotationShape> kRotationShapes = {
    {2, 5, 3, 2, 4}, {1, 1, 1, 1, 1}, {3, 33, 2, 2, 16}, {2, 20, 1, 3, 5}};

std::vector<torch::Tensor> rotation_inputs(const RotationShape& s) {
  torch::manual_seed(11);
  return {torch::randn({s.batch, s.length, 3 * s.width()}, torch::kDouble),
          torch::randn({3 * s.width()}, torch::kDouble)};
}

FusedFunction rotating(const RotationShape& s, bool plain) {
  torch::manual_seed(5);
  const torch::Tensor positions = torch::randint(60, {s.batch, s.num_positions, s.length});
  const Rotations rotations(2 * s.num_pairs, 60, 10'000);
  return [=](const std::vector<torch::Tensor>& in) {
    const HeadRotation rotation = rotations.at(positions, in[0].detach());
    return plain ? plain_rotate_heads(in[0], in[1], rotation) : rotate_heads(in[0], in[1], rotation);
  };
}

TEST(HeadRotation, EqualsTheSeparateOperators) {
  for (const RotationShape& s : kRotationShapes) {
    expect_same_pass(rotating(s, false), rotating(s, true), rotation_inputs(s), "width " + std::to_string(s.width()));
  }
}

TEST(HeadRotation, MatchesFiniteDifferences) {
  const RotationShape s{2, 3, 2, 2, 2};
  expect_finite_differences(rotating(s, false), rotation_inputs(s));
}

TEST(HeadRotation, MatchesFiniteDifferencesInAttention) {
  const RotationShape s{2, 3, 2, 2, 1};
  torch::manual_seed(6);
  const torch::Tensor positions = torch::randint(60, {s.batch, s.num_positions, s.length});
  const Rotations rotations(2 * s.num_pairs, 60, 10'000);
  expect_finite_differences(
      [&](const std::vector<torch::Tensor>& in) {
        AttentionOptions options{.num_heads = s.heads, .causal = true};
        options.rotation = rotations.at(positions, in[0].detach());
        return attention(in[0], in[1], options);
      },
      rotation_inputs(s));
}

TEST(HeadRotation, DoesNotDependOnTheNumberOfThreads) {
  const RotationShape s{2, 100, 2, 2, 4};
  expect_same_on_any_threads(rotating(s, false), rotation_inputs(s));
}

// One position a token is what Rotations::rotate does to heads, and values are left alone.
TEST(HeadRotation, RotatesOnePositionAsRotationsDo) {
  const Rotations rotations(8, 10, 10'000);
  torch::manual_seed(3);
  const torch::Tensor qkv = torch::randn({1, 7, 3 * 16}, torch::kDouble);
  const torch::Tensor positions = torch::arange(2, 9).view({1, 1, 7});
  const torch::Tensor bias = torch::zeros({48}, torch::kDouble);
  const auto parts = rotate_heads(qkv, bias, rotations.at(positions, qkv)).chunk(3, -1);
  const auto before = qkv.chunk(3, -1);
  for (const int part : {0, 1}) {
    const torch::Tensor expected = rotations.rotate(before[part].unflatten(-1, {2, 8}), 2).flatten(2);
    EXPECT_TRUE(torch::allclose(parts[part], expected, 1e-12, 1e-12)) << part;
  }
  EXPECT_TRUE(parts[2].equal(before[2]));
}

// By hand: a head of one pair for each of two positions; the first turns by its position, the second by the other.
TEST(HeadRotation, TurnsItsShareByEachPosition) {
  const Rotations rotations(2, 10, 10'000);  // one pair: an angle of 1 a position
  torch::Tensor qkv = torch::zeros({1, 1, 12}, torch::kDouble);
  qkv[0][0][0] = qkv[0][0][2] = 1;  // a query of (1, 0) and (1, 0)
  const torch::Tensor out =
      rotate_heads(qkv, torch::zeros({12}, torch::kDouble), rotations.at(torch::tensor({3, 5}).view({1, 2, 1}), qkv));
  const std::vector<double> expected = {std::cos(3), std::sin(3), std::cos(5), std::sin(5)};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(out[0][0][i].item<double>(), expected[static_cast<size_t>(i)], 1e-12) << i;
}

// What makes positions relative: moving all of them changes no weight of attention.
TEST(HeadRotation, ShowsAttentionOnlyDistances) {
  const Rotations rotations(8, 100, 10'000);
  torch::manual_seed(3);
  const torch::Tensor qkv = torch::randn({2, 9, 3 * 32}, torch::kDouble), bias = torch::randn({96}, torch::kDouble);
  const torch::Tensor positions = torch::randint(40, {2, 2, 9});
  const auto seen = [&](const torch::Tensor& at) {
    return attention(qkv, bias, {.num_heads = 2, .rotation = rotations.at(at, qkv)});
  };
  EXPECT_TRUE(torch::allclose(seen(positions), seen(positions + 50), 1e-9, 1e-9));
  torch::Tensor moved = positions.clone();
  moved.select(1, 1).select(1, 0).add_(1);
  EXPECT_FALSE(torch::allclose(seen(positions), seen(moved), 1e-4, 1e-4));
  const torch::Tensor plain = plain_attention(qkv, bias, {.num_heads = 2, .rotation = rotations.at(positions, qkv)});
  EXPECT_TRUE(torch::allclose(seen(positions), plain, 1e-9, 1e-9));
}

TEST(HeadRotation, RejectsAnglesThatDoNotFit) {
  const Rotations rotations(8, 10, 10'000);
  const torch::Tensor qkv = torch::zeros({1, 4, 24}), bias = torch::zeros({24});
  EXPECT_THROW(rotate_heads(qkv, bias, rotations.at(torch::zeros({1, 2, 4}, torch::kLong), qkv)), InternalError);
  EXPECT_THROW(rotate_heads(qkv, bias, rotations.at(torch::zeros({1, 1, 3}, torch::kLong), qkv)), InternalError);
}

}  // namespace
}  // namespace assay
