// Batches in the sampler's order, prepared ahead by threads. How many threads there are changes when a batch is ready,
// never what is in it nor its place.
#pragma once

#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "data/dataset.h"
#include "data/sampler.h"

namespace assay {

class Loader {
 public:
  struct Options {
    int num_workers = 1;  // threads; 0 prepares each batch when it is asked for
    int prefetch = 4;     // batches ready or in work at most
  };
  Loader(std::shared_ptr<const Dataset> dataset, const Sampler::Options& sampler, const Options& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const Dataset& dataset() const { return *dataset_; }
  // In each epoch, or in what is left of one after so many samples.
  int64_t num_batches(int64_t consumed_samples = 0) const { return sampler_.num_batches(consumed_samples); }
  int64_t batch_size() const { return sampler_.batch_size(); }
  int64_t global_batch_size() const { return sampler_.global_batch_size(); }  // of all processes

  // Begins an epoch behind so many of its samples, counted over all processes; what was prepared before is dropped.
  void start(int64_t epoch, int64_t consumed_samples = 0);
  // The next batch; nullopt after the last. Rethrows what a thread failed with, at the batch that failed.
  std::optional<Batch> next();
  bool at_end() const { return next_to_take_ >= num_to_take_; }  // there is no next batch

 private:
  struct Slot {
    Batch batch;
    std::exception_ptr error;
  };
  Slot prepare(int64_t batch) const;
  void work();

  // Constant after construction.
  std::shared_ptr<const Dataset> dataset_;
  Sampler sampler_;
  Options options_;
  // Constant while a thread prepares a batch.
  std::vector<int64_t> order_;
  int64_t epoch_ = 0;
  int64_t first_sample_ = 0;  // consumed before the batch 0 of the slots
  int64_t num_to_take_ = 0;   // batches
  // Guarded by mutex_.
  std::mutex mutex_;
  std::condition_variable ready_;  // a batch was prepared
  std::condition_variable room_;   // a batch was taken, or an epoch begins, or all ends
  std::map<int64_t, Slot> slots_;
  int64_t next_to_prepare_ = 0;
  int64_t next_to_take_ = 0;
  int num_in_work_ = 0;  // batches that threads prepare now
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace assay
