#include "data/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/error.h"
#include "device/threads.h"

namespace assay {

Loader::Loader(std::shared_ptr<const Dataset> dataset, const Sampler::Options& sampler, const Options& options)
    : dataset_(std::move(dataset)), sampler_(sampler), options_(options) {
  if (options.num_workers < 0) throw ConfigError(fmt::format("loader num_workers {}: negative", options.num_workers));
  if (options.prefetch < 1) throw ConfigError(fmt::format("loader prefetch {}: must be at least 1", options.prefetch));
}

Loader::~Loader() { stop_threads(); }

void Loader::start(int64_t epoch, int64_t consumed_samples) {
  stop_threads();
  epoch_ = epoch;
  order_ = sampler_.order(epoch);
  slots_.clear();
  next_to_prepare_ = next_to_take_ = 0;
  first_sample_ = consumed_samples;
  num_to_take_ = sampler_.num_batches(consumed_samples);
  for (int i = 0; i < options_.num_workers; ++i) threads_.emplace_back([this] { work(); });
}

void Loader::stop_threads() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  stopping_ = false;
}

Loader::Slot Loader::prepare(int64_t batch) const {
  Slot slot;
  try {
    const int64_t consumed = first_sample_ + batch * sampler_.global_batch_size();
    std::vector<int64_t> samples;
    for (const int64_t position : sampler_.own_positions(consumed))
      samples.push_back(order_[static_cast<size_t>(position)]);
    const auto count = static_cast<int64_t>(samples.size());
    if (count == 0) samples.push_back(order_[0]);  // one that does not count
    slot.batch = dataset_->gather(samples, epoch_);
    slot.batch.num_samples = count;
    slot.batch.num_samples_of_all = sampler_.whole_batch_size(consumed);
  } catch (...) {
    slot.error = std::current_exception();
  }
  return slot;
}

void Loader::work() {
  compute_on_this_thread_alone();
  std::unique_lock lock(mutex_);
  while (true) {
    room_.wait(lock, [&] { return stopping_ || next_to_prepare_ < next_to_take_ + options_.prefetch; });
    if (stopping_ || next_to_prepare_ >= num_to_take_) return;
    const int64_t batch = next_to_prepare_++;
    lock.unlock();
    Slot slot = prepare(batch);
    lock.lock();
    slots_[batch] = std::move(slot);
    ready_.notify_one();
  }
}

std::optional<Batch> Loader::next() {
  if (at_end()) return std::nullopt;
  Slot slot;
  if (threads_.empty()) {
    slot = prepare(next_to_take_++);
  } else {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return slots_.count(next_to_take_) > 0; });
    slot = std::move(slots_.extract(next_to_take_++).mapped());
    lock.unlock();
    room_.notify_all();
  }
  if (slot.error) std::rethrow_exception(slot.error);
  return std::move(slot.batch);
}

}  // namespace assay
