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

Loader::~Loader() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Loader::start(int64_t epoch, int64_t consumed_samples) {
  std::vector<int64_t> order = sampler_.order(epoch);
  {
    std::unique_lock lock(mutex_);
    next_to_prepare_ = num_to_take_;  // the threads begin nothing more of the epoch before
    ready_.wait(lock, [&] { return num_in_work_ == 0; });
    epoch_ = epoch;
    order_ = std::move(order);
    slots_.clear();
    next_to_prepare_ = next_to_take_ = 0;
    first_sample_ = consumed_samples;
    num_to_take_ = sampler_.num_batches(consumed_samples);
  }
  room_.notify_all();
  // They stay for the epochs to come: libtorch makes a pool of threads, which spins at first, for each new thread.
  while (static_cast<int>(threads_.size()) < options_.num_workers) threads_.emplace_back([this] { work(); });
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
    room_.wait(lock, [&] {
      return stopping_ || next_to_prepare_ < std::min(num_to_take_, next_to_take_ + options_.prefetch);
    });
    if (stopping_) return;
    const int64_t batch = next_to_prepare_++;
    ++num_in_work_;
    lock.unlock();
    Slot slot = prepare(batch);
    lock.lock();
    --num_in_work_;
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
