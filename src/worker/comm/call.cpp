#include "comm/call.h"

#include "base/error.h"

namespace assay::comm {

const char* kind_text(CallKind kind) {
  switch (kind) {
    case CallKind::AllReduce: return "all_reduce";
    case CallKind::ReduceScatter: return "reduce_scatter";
    case CallKind::AllGather: return "all_gather";
    case CallKind::Broadcast: return "broadcast";
    case CallKind::AllToAll: return "all_to_all";
    case CallKind::Barrier: return "barrier";
    case CallKind::Allocate: return "allocate";
  }
  return "?";
}

ActivityBoard::ActivityBoard(uint64_t group, std::string name, std::vector<int> ranks)
    : fixed_{.group = group, .group_name = std::move(name), .ranks = std::move(ranks)},
      since_(std::chrono::steady_clock::now()) {}

void ActivityBoard::begin(const char* kind, int64_t bytes, const std::shared_ptr<const std::string>& purpose) {
  const std::lock_guard lock(mutex_);
  ++number_;
  kind_ = kind;
  purpose_ = purpose;
  bytes_ = bytes;
  waiting_ = true;
  since_ = std::chrono::steady_clock::now();
}

void ActivityBoard::end() {
  const std::lock_guard lock(mutex_);
  waiting_ = false;
}

Activity ActivityBoard::now() const {
  Activity activity = fixed_;
  const std::lock_guard lock(mutex_);
  activity.number = number_;
  activity.kind = kind_;
  activity.purpose = purpose_ ? *purpose_ : "";
  activity.bytes = bytes_;
  activity.waiting = waiting_;
  activity.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count();
  return activity;
}

void Guard::check() const {
  if (control_.health().failed()) control_.health().check(call_text(describe_()));
  if (stop_.load(std::memory_order_acquire)) {
    throw CommunicationError(call_text(describe_()) + ": abandoned, its communicator is gone");
  }
  const Clock::time_point since = since_ ? since_() : start_;
  const double seconds = std::chrono::duration<double>(Clock::now() - since).count();
  if (seconds < control_.options().time_limit_s) return;
  Activity stuck = describe_();
  stuck.seconds = seconds;
  control_.give_up(stuck);
}

}  // namespace assay::comm
