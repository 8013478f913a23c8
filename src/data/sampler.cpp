#include "data/sampler.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "base/error.h"
#include "data/random.h"

namespace assay {

Sampler::Sampler(const Options& options) : options_(options) {
  if (options.batch_size < 1) throw ConfigError(fmt::format("batch size {}: must be at least 1", options.batch_size));
  num_batches_ = options.drop_last ? options.num_samples / options.batch_size
                                   : (options.num_samples + options.batch_size - 1) / options.batch_size;
  if (num_batches_ < 1) {
    throw ConfigError(fmt::format("batch size {}: the data has only {} samples and drop_last leaves no batch",
                                  options.batch_size, options.num_samples));
  }
}

std::vector<int64_t> Sampler::order(int64_t epoch) const {
  std::vector<int64_t> order(static_cast<size_t>(options_.num_samples));
  std::iota(order.begin(), order.end(), 0);
  if (options_.shuffle) {
    KeyedRandom random(options_.seed, static_cast<uint64_t>(epoch));
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  }
  return order;
}

}  // namespace assay
