#include "launch/failure_rule.h"

#include "base/error.h"

namespace assay {

bool lost_touch(const ExitStatus& status) { return status.code == worker_exit_code(ErrorKind::Communication); }

void FailureRule::note(size_t who, bool only_lost_touch) {
  if (!first_failure_) first_failure_.emplace();
  if (decider_ && (!only_lost_touch_ || only_lost_touch)) return;
  decider_ = who;
  only_lost_touch_ = only_lost_touch;
}

bool FailureRule::is_decided() const {
  return decider_ && (!only_lost_touch_ || first_failure_->seconds() >= grace_s_);
}

}  // namespace assay
