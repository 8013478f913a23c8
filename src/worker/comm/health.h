// Whether a job is still whole: the first thing that went wrong, seen by every thread that waits for a peer. Knows no
// transport.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>

#include "base/error.h"

namespace assay::comm {

class Health {
 public:
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // The first reason stays. `kind`: Config when a process refused the configuration, which is that of all.
  void fail(const std::string& reason, ErrorKind kind = ErrorKind::Communication);
  std::string reason() const;
  // Throws CommunicationError, or ConfigError for that kind, when it has failed. `where` begins the message:
  // "all_reduce #17 of dp".
  void check(const std::string& where = {}) const;
  // Waits at most this long for a failure; whether there is one.
  bool wait_failed(double seconds) const;

 private:
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::string reason_;
  ErrorKind kind_ = ErrorKind::Communication;
};

}  // namespace assay::comm
