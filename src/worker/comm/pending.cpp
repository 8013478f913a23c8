#include "comm/pending.h"

#include "base/error.h"

namespace assay::comm {

void Pending::wait() {
  if (state_) state_->wait();
}

bool Pending::done() const { return !state_ || state_->is_done(); }

void Pending::State::finish(std::exception_ptr problem) {
  const std::lock_guard lock(mutex);
  error = problem;
  done.store(true, std::memory_order_release);
  changed.notify_all();
}

void Pending::State::wait() {
  if (!is_done()) {
    const auto start = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_done(); });
    lock.unlock();
    clock->add(std::chrono::steady_clock::now() - start);
  }
  if (error) std::rethrow_exception(error);
}

std::shared_ptr<Pending::State> TaskQueue::add(Task task, const std::shared_ptr<WaitClock>& clock) {
  auto state = std::make_shared<Pending::State>(clock);
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  ++open_;
  entries_.push_back({std::move(task), state});
  changed_.notify_one();
  return state;
}

void TaskQueue::run() {
  while (true) {
    Entry entry;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !entries_.empty(); });
      if (stopping_) return;
      entry = std::move(entries_.front());
      entries_.pop_front();
    }
    std::exception_ptr problem;
    try {
      entry.task();
    } catch (...) {
      problem = std::current_exception();
    }
    --open_;  // before the state is done, so that who has waited finds the queue idle
    entry.state->finish(problem);
  }
}

void TaskQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  for (Entry& entry : entries_) {
    entry.state->finish(std::make_exception_ptr(CommunicationError("abandoned: its communicator is gone")));
  }
  entries_.clear();
}

}  // namespace assay::comm
