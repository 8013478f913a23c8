// The area under the ROC curve.
#pragma once

#include <torch/types.h>

namespace assay {

// The share of pairs of a positive and a negative sample in which the positive one has the higher score; of equal
// scores a half. Exact: pairs are counted in integers. Scores and labels [N]; a label above 0.5 is positive. NaN when
// there is no such pair, since all labels are the same, and when a score is NaN.
double area_under_curve(const torch::Tensor& scores, const torch::Tensor& labels);

}  // namespace assay
