// Whether a job is still whole: the first thing that went wrong, seen by every thread that waits for a peer. Knows no
// transport.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>

namespace assay::comm {

class Health {
 public:
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // The first reason stays.
  void fail(const std::string& reason);
  std::string reason() const;
  // Throws CommunicationError when it has failed. `where` begins the message: "all_reduce #17 of dp".
  void check(const std::string& where = {}) const;
  // Waits at most this long for a failure; whether there is one.
  bool wait_failed(double seconds) const;

 private:
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::string reason_;
};

}  // namespace assay::comm
