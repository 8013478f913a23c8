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
    int64_t batch_size = 1;  // of this process
    bool shuffle = false;
    bool drop_last = false;  // leave out a last batch that is not full
    uint64_t seed = 0;
    // Processes that share every batch: together they have num_replicas * batch_size samples. A batch is computed in
    // num_parts parts, and what the replicas have of a part is together that part of the whole batch.
    int64_t num_replicas = 1;
    int64_t replica = 0;
    int64_t num_parts = 1;
    bool keep_all = true;  // false: a last batch with fewer samples than replicas is left out
  };
  // Throws ConfigError when a batch is empty or, with drop_last, larger than the data.
  explicit Sampler(const Options& options);

  int64_t num_batches() const { return num_batches_; }  // in each epoch
  int64_t batch_size() const { return options_.batch_size; }
  // All samples of an epoch in their order.
  std::vector<int64_t> order(int64_t epoch) const;
  int64_t whole_batch_size(int64_t batch) const;  // of all processes
  // Where in that order the samples of a batch are that this process has.
  std::vector<int64_t> own_positions(int64_t batch) const;

 private:
  Options options_;
  int64_t num_batches_ = 0;
};

}  // namespace assay
