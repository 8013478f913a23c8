#include "nn/rotary.h"

#include <cmath>

#include "base/error.h"

namespace assay {

Rotations::Rotations(int64_t head_width, int64_t length, double base) {
  ASSAY_CHECK(head_width % 2 == 0, "rotations need heads of an even width");
  const auto options = torch::TensorOptions(torch::kDouble);
  const torch::Tensor pairs = torch::arange(0, head_width, 2, options) / static_cast<double>(head_width);
  const torch::Tensor angles = torch::arange(length, options).unsqueeze(1) * torch::exp(pairs * -std::log(base));
  const torch::Tensor both = torch::cat({angles, angles}, 1);
  cosines_ = both.cos();
  sines_ = both.sin();
}

torch::Tensor Rotations::rotate(const torch::Tensor& x, int64_t first) const {
  const auto rows = [&](const torch::Tensor& table) {
    return table.narrow(0, first, x.size(1)).unsqueeze(1).to(x.options());  // [T, 1, d]
  };
  const auto halves = x.chunk(2, -1);
  return x * rows(cosines_) + torch::cat({-halves[1], halves[0]}, -1) * rows(sines_);
}

HeadRotation Rotations::at(const torch::Tensor& positions, const torch::Tensor& like) const {
  const torch::Tensor places = positions.transpose(1, 2);  // [B, T, P]
  const auto rows = [&](const torch::Tensor& table) {
    return torch::embedding(table.narrow(1, 0, table.size(1) / 2).to(like.options()), places);
  };
  return {rows(cosines_), rows(sines_)};
}

torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double epsilon) {
  const bool narrow = x.scalar_type() == torch::kHalf || x.scalar_type() == torch::kBFloat16;
  const torch::Tensor wide = narrow ? x.to(torch::kFloat) : x;
  const torch::Tensor normed = wide * (wide.square().mean(at::IntArrayRef({-1}), /*keepdim=*/true) + epsilon).rsqrt();
  return normed.to(x.scalar_type()) * weight;
}

}  // namespace assay
