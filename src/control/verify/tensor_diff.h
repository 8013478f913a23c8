// How far two tensors are apart, in the measures that accelerator vendors use: `e` is what was measured, `b` the
// baseline.
#pragma once

#include <optional>
#include <span>

namespace assay {

struct TensorDiff {
  double max_abs = 0;    // max |e-b|
  double diff1 = 0;      // sum|e-b| / sum|b|
  double diff2 = 0;      // sqrt(sum (e-b)^2 / sum b^2)
  double diff3_max = 0;  // |e-b| / (|b| + 1e-9) where |b| > threshold, else |e-b|
  double diff3_mean = 0;
  std::optional<double> diff4;  // share of e > b among the unequal elements: 0.5 is no bias; nullopt when all are equal
  bool finite = true;  // false when either side has a NaN or an infinity that the other does not have in its place
};

// Same sizes. `threshold`: 1e-6 for fp32, 1e-4 for fp16.
TensorDiff tensor_diff(std::span<const float> measured, std::span<const float> baseline, double threshold = 1e-6);

// The share of rows whose largest element is in the same place. Rows of `width`; 1 when there are no rows is a lie, so:
// nullopt.
std::optional<double> top1_agreement(std::span<const float> a, std::span<const float> b, size_t width);

}  // namespace assay
