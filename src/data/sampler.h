// The order of samples: a function of (seed, epoch) and nothing else, cut into batches. A position in it is a pair of
// numbers, so a checkpoint can hold it.
#pragma once

#include <cstdint>
#include <vector>

namespace assay {

class Sampler {
 public:
  struct Options {
    int64_t num_samples = 0;
    int64_t batch_size = 1;
    bool shuffle = false;
    bool drop_last = false;  // leave out a last batch that is not full
    uint64_t seed = 0;
  };
  // Throws ConfigError when a batch is empty or, with drop_last, larger than the data.
  explicit Sampler(const Options& options);

  int64_t num_batches() const { return num_batches_; }  // in each epoch
  int64_t batch_size() const { return options_.batch_size; }
  // All samples of an epoch in their order; batch b is [b * batch_size, (b + 1) * batch_size).
  std::vector<int64_t> order(int64_t epoch) const;

 private:
  Options options_;
  int64_t num_batches_ = 0;
};

}  // namespace assay
