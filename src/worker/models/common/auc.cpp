#include "models/common/auc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"

namespace assay {

double area_under_curve(const torch::Tensor& scores, const torch::Tensor& labels) {
  ASSAY_CHECK(scores.dim() == 1 && scores.sizes() == labels.sizes(), "scores and labels of different shapes");
  const torch::Tensor score = scores.detach().to(torch::kCPU, torch::kDouble).contiguous();
  const torch::Tensor label = labels.detach().to(torch::kCPU, torch::kDouble).contiguous();
  std::vector<std::pair<double, bool>> samples;
  for (int64_t i = 0; i < score.numel(); ++i) {
    const double value = score.data_ptr<double>()[i];
    if (std::isnan(value)) return std::numeric_limits<double>::quiet_NaN();
    samples.emplace_back(value, label.data_ptr<double>()[i] > 0.5);
  }
  std::sort(samples.begin(), samples.end());
  int64_t half_pairs = 0;  // 2 for a pair in the right order, 1 for a tie
  int64_t num_positive = 0, num_negative = 0;
  for (size_t begin = 0, end = 0; begin < samples.size(); begin = end) {
    int64_t positive = 0, negative = 0;  // of this score
    for (; end < samples.size() && samples[end].first == samples[begin].first; ++end) {
      ++(samples[end].second ? positive : negative);
    }
    half_pairs += positive * (2 * num_negative + negative);
    num_positive += positive;
    num_negative += negative;
  }
  if (num_positive == 0 || num_negative == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(half_pairs) /
         (2.0 * static_cast<double>(num_positive) * static_cast<double>(num_negative));
}

}  // namespace assay
