#include "comm/health.h"

#include <chrono>

namespace assay::comm {

void Health::fail(const std::string& reason, ErrorKind kind) {
  const std::lock_guard lock(mutex_);
  if (failed_.load(std::memory_order_relaxed)) return;
  reason_ = reason;
  kind_ = kind;
  failed_.store(true, std::memory_order_release);
  changed_.notify_all();
}

std::string Health::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

void Health::check(const std::string& where) const {
  if (!failed()) return;
  const std::string why = reason();
  // The watchdog's reason begins with the call itself.
  const std::string text = where.empty() || why.starts_with(where) ? why : where + ": " + why;
  if (kind_ == ErrorKind::Config) throw ConfigError(text);  // constant once it has failed
  throw CommunicationError(text);
}

bool Health::wait_failed(double seconds) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return failed(); });
}

}  // namespace assay::comm
