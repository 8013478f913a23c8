// What stands behind a Pending, and the thread that runs a group's calls one after the other.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "comm/communicator.h"

namespace assay::comm {

// What waiting has cost a communicator's callers.
struct WaitClock {
  std::atomic<int64_t> waited_ns{0};
  void add(std::chrono::steady_clock::duration time) {
    waited_ns += std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  }
};

struct Pending::State {
  explicit State(std::shared_ptr<WaitClock> clock_of_group) : clock(std::move(clock_of_group)) {}
  void finish(std::exception_ptr problem = nullptr);
  bool is_done() const { return done.load(std::memory_order_acquire); }
  void wait();

  const std::shared_ptr<WaitClock> clock;
  std::atomic<bool> done{false};
  std::mutex mutex;
  std::condition_variable changed;
  std::exception_ptr error;  // constant once done
};

// Runs functions in order on a thread of its own, which begins with the first one.
class TaskQueue {
 public:
  using Task = std::function<void()>;
  ~TaskQueue() { stop(); }
  std::shared_ptr<Pending::State> add(Task task, const std::shared_ptr<WaitClock>& clock);
  // Nothing is queued and nothing runs; stays so until the next add() of the calling thread.
  bool idle() const { return open_.load(std::memory_order_acquire) == 0; }
  // Ends after the function that runs now; what is queued fails.
  void stop();

 private:
  void run();
  struct Entry {
    Task task;
    std::shared_ptr<Pending::State> state;
  };
  std::atomic<int> open_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> entries_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace assay::comm
