// One collective call, and what its waits need: where it is, until when, and who may end it. Knows no transport.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "comm/communicator.h"
#include "comm/control.h"

namespace assay::comm {

enum class CallKind : uint32_t { AllReduce, ReduceScatter, AllGather, Broadcast, AllToAll, Barrier, Allocate };
const char* kind_text(CallKind kind);

// Sizes as Communicator's functions define them; all_reduce and broadcast have input == output.
struct Call {
  CallKind kind = CallKind::Barrier;
  const void* input = nullptr;
  void* output = nullptr;
  int64_t count = 0;
  DType type = DType::U8;
  ReduceOp op = ReduceOp::Sum;
  int root = 0;
  int64_t part_bytes() const { return count * static_cast<int64_t>(size_of(type)); }
};

// Where one group of this process is, for the watchdog: at first it is being made, as call 0. Written by who runs
// calls, read by the control channel.
class ActivityBoard {
 public:
  ActivityBoard(uint64_t group, std::string name, std::vector<int> ranks);
  void begin(const char* kind, int64_t bytes, const std::shared_ptr<const std::string>& purpose);
  void end();
  Activity now() const;

 private:
  const Activity fixed_;
  mutable std::mutex mutex_;
  // Guarded by the mutex.
  uint64_t number_ = 0;
  const char* kind_ = "making";
  std::shared_ptr<const std::string> purpose_;
  int64_t bytes_ = 0;
  bool waiting_ = true;
  std::chrono::steady_clock::time_point since_;
};

// Ends a wait: throws CommunicationError when the job has failed, when this wait exceeds the time limit, or when its
// communicator is being destroyed.
class Guard {
 public:
  using Clock = std::chrono::steady_clock;
  // `describe` tells in which call this is; asked only when something is wrong.
  Guard(Control& control, const std::atomic<bool>& stop, std::function<Activity()> describe)
      : control_(control), stop_(stop), describe_(std::move(describe)) {}
  void restart() { start_ = Clock::now(); }  // a new wait begins
  void check() const;
  // The wait began when `since` says, which may change; nullptr: at the last restart().
  void limit_by(std::function<Clock::time_point()> since) { since_ = std::move(since); }
  bool stopped() const { return stop_.load(std::memory_order_relaxed) || control_.health().failed(); }
  Control& control() const { return control_; }
  Activity describe() const { return describe_(); }

 private:
  Control& control_;
  const std::atomic<bool>& stop_;
  std::function<Activity()> describe_;
  Clock::time_point start_ = Clock::now();
  std::function<Clock::time_point()> since_;
};

}  // namespace assay::comm
