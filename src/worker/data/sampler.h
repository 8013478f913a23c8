// The order of samples: a function of (seed, epoch) and nothing else, cut into batches. A position in it is an epoch
// and how many of its samples were consumed, so a checkpoint can hold it, and batches of another size continue from it.
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

  // In each epoch, or in what is left of one after so many samples of all processes.
  int64_t num_batches(int64_t consumed_samples = 0) const;
  int64_t batch_size() const { return options_.batch_size; }
  int64_t global_batch_size() const { return options_.batch_size * options_.num_replicas; }  // of all processes
  // All samples of an epoch in their order.
  std::vector<int64_t> order(int64_t epoch) const;
  // Of the batch that follows so many consumed samples: its size over all processes, and where in that order the
  // samples are that this process has.
  int64_t whole_batch_size(int64_t consumed_samples) const;
  std::vector<int64_t> own_positions(int64_t consumed_samples) const;

 private:
  Options options_;
};

}  // namespace assay
