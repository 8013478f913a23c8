#include "data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "data/random.h"

namespace assay {

Sampler::Sampler(const Options& options) : options_(options) {
  if (options.batch_size < 1) throw ConfigError(fmt::format("batch size {}: must be at least 1", options.batch_size));
  if (num_batches() < 1) {
    throw ConfigError(fmt::format("batch size {}: the data has only {} samples and drop_last leaves no batch",
                                  global_batch_size(), options.num_samples));
  }
}

int64_t Sampler::num_batches(int64_t consumed_samples) const {
  const int64_t left = std::max<int64_t>(options_.num_samples - consumed_samples, 0);
  const int64_t rest = left % global_batch_size();
  const bool takes_rest = rest > 0 && !options_.drop_last && (options_.keep_all || rest >= options_.num_replicas);
  return left / global_batch_size() + (takes_rest ? 1 : 0);
}

int64_t Sampler::whole_batch_size(int64_t consumed_samples) const {
  return std::min(global_batch_size(), options_.num_samples - consumed_samples);
}

std::vector<int64_t> Sampler::own_positions(int64_t consumed_samples) const {
  const int64_t replicas = options_.num_replicas, count = whole_batch_size(consumed_samples);
  // As many parts as every replica has samples for.
  const int64_t parts = std::clamp<int64_t>(count / replicas, 1, options_.num_parts);
  std::vector<int64_t> positions;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t begin = count * part / parts, size = count * (part + 1) / parts - begin;
    const int64_t end = begin + size * (options_.replica + 1) / replicas;
    for (int64_t i = begin + size * options_.replica / replicas; i < end; ++i)
      positions.push_back(consumed_samples + i);
  }
  return positions;
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
