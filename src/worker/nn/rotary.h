// Positions as rotations (Su et al. 2021), and the normalisation by the root of the mean square (Zhang and Sennrich
// 2019), from libtorch's operators.
//
// Shapes: B batch, T sequence, H heads, d width of a head.
#pragma once

#include <torch/types.h>

namespace assay {

// How the heads of tokens with P positions each are rotated: every position rotates a share of d / P of a head's width.
struct HeadRotation {
  torch::Tensor cosines, sines;  // [B, T, P, d / P / 2]; undefined: no rotation
};

// Angles of positions 0 .. length - 1: position * base^(-2i / d) for the pairs i of a head.
class Rotations {
 public:
  Rotations() = default;
  Rotations(int64_t head_width, int64_t length, double base);
  // x [B, T, H, d], whose first token has position `first`. The pairs are (i, i + d / 2), as in Hugging Face's
  // checkpoints.
  torch::Tensor rotate(const torch::Tensor& x, int64_t first = 0) const;
  // For positions [B, P, T] int64 and heads P times as wide as these rotations, in the type of `like`.
  HeadRotation at(const torch::Tensor& positions, const torch::Tensor& like) const;

 private:
  torch::Tensor cosines_, sines_;  // [length, d] double
};

// x / sqrt(mean(x^2) + epsilon) * weight over the last dimension, in float32 where x has less.
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double epsilon);

}  // namespace assay
