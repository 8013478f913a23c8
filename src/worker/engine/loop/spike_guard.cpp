#include "engine/loop/spike_guard.h"

#include <algorithm>

#include "base/error.h"

namespace assay {

double median(std::vector<double> values) {
  ASSAY_CHECK(!values.empty(), "no values");
  const size_t half = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::optional<double> SpikeGuard::limit(const std::vector<double>& recent) const {
  if (static_cast<int64_t>(recent.size()) < options_.window) return std::nullopt;
  const double middle = median(recent);
  return middle > 0 ? std::optional(options_.factor * middle) : std::nullopt;
}

void SpikeGuard::add(std::vector<double>& recent, double loss) const {
  recent.push_back(loss);
  if (static_cast<int64_t>(recent.size()) > options_.window) recent.erase(recent.begin());
}

}  // namespace assay
