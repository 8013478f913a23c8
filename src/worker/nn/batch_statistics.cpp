#include "nn/batch_statistics.h"

namespace assay {

namespace {

thread_local comm::Communicator* statistics_group = nullptr;

}  // namespace

bool shares_statistics() { return statistics_group && statistics_group->size() > 1; }

SharedStatistics::SharedStatistics(comm::Communicator& group) : before_(statistics_group) { statistics_group = &group; }
SharedStatistics::~SharedStatistics() { statistics_group = before_; }

BatchMoments shared_moments(BatchMoments local) {
  if (!shares_statistics()) return local;
  const size_t channels = local.mean.size();
  std::vector<double> mine = {local.count};
  mine.insert(mine.end(), local.mean.begin(), local.mean.end());
  mine.insert(mine.end(), local.variance.begin(), local.variance.end());
  std::vector<double> all(mine.size() * static_cast<size_t>(statistics_group->size()));
  statistics_group->all_gather(mine.data(), all.data(), static_cast<int64_t>(mine.size()), comm::DType::F64);
  // Two sets of moments become one (Chan et al. 1979), in the order of the processes.
  BatchMoments total{0, std::vector<double>(channels), std::vector<double>(channels)};
  for (size_t at = 0; at < all.size(); at += mine.size()) {
    const double count = all[at], sum = total.count + count;
    if (!(count > 0)) continue;
    for (size_t k = 0; k < channels; ++k) {
      const double delta = all[at + 1 + k] - total.mean[k];
      total.variance[k] = (total.variance[k] * total.count + all[at + 1 + channels + k] * count +
                           delta * delta * total.count * count / sum) /
                          sum;
      total.mean[k] += delta * count / sum;
    }
    total.count = sum;
  }
  return total;
}

void share_sums(std::vector<double>& values) {
  if (!shares_statistics()) return;
  statistics_group->all_reduce(values.data(), static_cast<int64_t>(values.size()), comm::DType::F64);
}

}  // namespace assay
