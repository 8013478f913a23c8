// A long curve as few points that look the same: of each stretch the lowest, the highest and the first that is not a
// number, so that no spike and no NaN disappears.
#pragma once

#include <cstddef>
#include <vector>

#include "report/run_view.h"

namespace assay {

// Indices of the points to keep, ascending, at most max(max_points, 5); all of them when they are not too many. The
// first and the last point are always kept.
std::vector<size_t> decimate(const std::vector<double>& y, size_t max_points);

// The curve with those points only; total_points says how many there were.
Curve decimated(const Curve& curve, size_t max_points);

}  // namespace assay
