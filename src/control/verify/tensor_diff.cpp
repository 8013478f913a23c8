#include "verify/tensor_diff.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace assay {

TensorDiff tensor_diff(std::span<const float> measured, std::span<const float> baseline, double threshold) {
  ASSAY_CHECK(measured.size() == baseline.size(), "tensors of different sizes");
  TensorDiff diff;
  double sum_error = 0, sum_base = 0, sum_error2 = 0, sum_base2 = 0, sum_relative = 0;
  size_t num_unequal = 0, num_above = 0;
  for (size_t i = 0; i < measured.size(); ++i) {
    const double e = measured[i];
    const double b = baseline[i];
    if (!std::isfinite(e) || !std::isfinite(b)) {
      const bool same = e == b || (std::isnan(e) && std::isnan(b));
      diff.finite = diff.finite && same;
      continue;
    }
    const double error = std::fabs(e - b);
    const double base = std::fabs(b);
    const double relative = base > threshold ? error / (base + 1e-9) : error;
    diff.max_abs = std::max(diff.max_abs, error);
    diff.diff3_max = std::max(diff.diff3_max, relative);
    sum_relative += relative;
    sum_error += error;
    sum_base += base;
    sum_error2 += error * error;
    sum_base2 += base * base;
    num_unequal += e != b;
    num_above += e > b;
  }
  const auto ratio = [](double error, double base) {
    return error == 0 ? 0 : base == 0 ? std::numeric_limits<double>::infinity() : error / base;
  };
  diff.diff1 = ratio(sum_error, sum_base);
  diff.diff2 = std::sqrt(ratio(sum_error2, sum_base2));
  if (!measured.empty()) diff.diff3_mean = sum_relative / static_cast<double>(measured.size());
  if (num_unequal > 0) diff.diff4 = static_cast<double>(num_above) / static_cast<double>(num_unequal);
  return diff;
}

std::optional<double> top1_agreement(std::span<const float> a, std::span<const float> b, size_t width) {
  ASSAY_CHECK(a.size() == b.size() && width > 0 && a.size() % width == 0, "tensors of different shapes");
  const size_t num_rows = a.size() / width;
  if (num_rows == 0) return std::nullopt;
  size_t num_same = 0;
  for (size_t row = 0; row < num_rows; ++row) {
    const auto top = [&](std::span<const float> values) {
      const auto line = values.subspan(row * width, width);
      return std::max_element(line.begin(), line.end()) - line.begin();
    };
    num_same += top(a) == top(b);
  }
  return static_cast<double>(num_same) / static_cast<double>(num_rows);
}

}  // namespace assay
