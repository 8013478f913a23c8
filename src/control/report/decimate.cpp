#include "report/decimate.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace assay {

namespace {

void keep_extremes(const std::vector<double>& y, size_t begin, size_t end, std::vector<size_t>& kept) {
  std::optional<size_t> lowest, highest, broken;
  for (size_t i = begin; i < end; ++i) {
    if (!std::isfinite(y[i])) {
      if (!broken) broken = i;
      continue;
    }
    if (!lowest || y[i] < y[*lowest]) lowest = i;
    if (!highest || y[i] > y[*highest]) highest = i;
  }
  const size_t start = kept.size();
  for (const auto& index : {lowest, highest, broken}) {
    if (index) kept.push_back(*index);
  }
  std::sort(kept.begin() + static_cast<std::ptrdiff_t>(start), kept.end());
  kept.erase(std::unique(kept.begin() + static_cast<std::ptrdiff_t>(start), kept.end()), kept.end());
}

}  // namespace

std::vector<size_t> decimate(const std::vector<double>& y, size_t max_points) {
  const size_t n = y.size();
  max_points = std::max<size_t>(max_points, 5);
  std::vector<size_t> kept;
  if (n <= max_points) {
    for (size_t i = 0; i < n; ++i) kept.push_back(i);
    return kept;
  }
  const size_t num_buckets = (max_points - 2) / 3;
  const size_t inner = n - 2;
  kept.push_back(0);
  for (size_t bucket = 0; bucket < num_buckets; ++bucket) {
    keep_extremes(y, 1 + inner * bucket / num_buckets, 1 + inner * (bucket + 1) / num_buckets, kept);
  }
  kept.push_back(n - 1);
  return kept;
}

Curve decimated(const Curve& curve, size_t max_points) {
  const size_t n = std::min(curve.x.size(), curve.y.size());
  if (n <= max_points && curve.x.size() == curve.y.size()) return curve;
  Curve out = curve;
  out.x.clear();
  out.y.clear();
  if (n > max_points) out.total_points = std::max(curve.total_points, n);
  std::vector<double> y(curve.y.begin(), curve.y.begin() + static_cast<std::ptrdiff_t>(n));
  for (size_t i : decimate(y, max_points)) {
    out.x.push_back(curve.x[i]);
    out.y.push_back(y[i]);
  }
  return out;
}

}  // namespace assay
