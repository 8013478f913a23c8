#include "models/ocr_det/loss.h"

#include <algorithm>

#include "models/ocr_det/network.h"

namespace assay::ocr_det {

namespace {

constexpr double kShrinkWeight = 5;
constexpr double kThresholdWeight = 10;
constexpr double kNegativeRatio = 3;
constexpr double kEpsilon = 1e-6;

torch::Tensor balanced_cross_entropy(const torch::Tensor& probability, const torch::Tensor& map,
                                     const torch::Tensor& mask) {
  const torch::Tensor each = at::binary_cross_entropy(probability, map, {}, at::Reduction::None);
  const torch::Tensor in_text = map * mask;
  const torch::Tensor elsewhere = mask - in_text;
  const auto num_in_text = in_text.sum().item<double>();
  const double num_elsewhere = std::min(elsewhere.sum().item<double>(), kNegativeRatio * num_in_text);
  const torch::Tensor hardest = std::get<0>(
      (elsewhere * each).flatten().topk(static_cast<int64_t>(num_elsewhere), 0, /*largest=*/true, /*sorted=*/false));
  return ((in_text * each).sum() + hardest.sum()) / (num_in_text + num_elsewhere + kEpsilon);
}

torch::Tensor dice_loss(const torch::Tensor& binary, const torch::Tensor& map, const torch::Tensor& mask) {
  const torch::Tensor in_text = map * mask;
  return 1 - 2 * (binary * in_text).sum() / ((binary * mask).sum() + in_text.sum() + kEpsilon);
}

torch::Tensor masked_distance(const torch::Tensor& found, const torch::Tensor& map, const torch::Tensor& mask) {
  return ((found - map).abs() * mask).sum() / (mask.sum() + kEpsilon);
}

}  // namespace

torch::Tensor detection_loss(const torch::Tensor& maps, const torch::Tensor& targets) {
  const auto target = [&](TargetChannel channel) { return targets.select(1, channel); };
  const torch::Tensor shrink =
      kShrinkWeight * balanced_cross_entropy(maps.select(1, kShrinkChannel), target(kShrinkMap), target(kShrinkMask));
  if (maps.size(1) == 1) return shrink;
  return shrink + dice_loss(maps.select(1, kBinaryChannel), target(kShrinkMap), target(kShrinkMask)) +
         kThresholdWeight *
             masked_distance(maps.select(1, kThresholdChannel), target(kThresholdMap), target(kThresholdMask));
}

}  // namespace assay::ocr_det
