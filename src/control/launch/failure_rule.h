// The rule by which one of several failures is the cause: the first rank that fails by itself decides, but one that
// only lost touch with the others (exit code 13) is seldom the cause, so for some seconds another one is looked for.
// The same for ranks of one host and for the hosts of a job; knows neither.
#pragma once

#include <optional>

#include "base/process.h"
#include "base/time.h"

namespace assay {

// What a rank gets between the failure of another and SIGKILL, and how long the cause of a lost connection is looked
// for.
inline constexpr double kPeerGraceSeconds = 3;

// The rank says only that it lost touch with the others.
bool lost_touch(const ExitStatus& status);

class FailureRule {
 public:
  explicit FailureRule(double grace_s = kPeerGraceSeconds) : grace_s_(grace_s) {}

  // Rank or node `who` has failed by itself; to be told in the order in which failures were seen, and as often as
  // wanted.
  void note(size_t who, bool only_lost_touch);
  // The cause, as far as it is known; nullopt: nobody has failed.
  std::optional<size_t> decider() const { return decider_; }
  // The decider lost touch with another, which is the cause then.
  bool is_consequence() const { return decider_ && only_lost_touch_; }
  // Nothing more is waited for: the others can be stopped.
  bool is_decided() const;

 private:
  double grace_s_;
  std::optional<size_t> decider_;
  bool only_lost_touch_ = false;
  std::optional<Stopwatch> first_failure_;
};

}  // namespace assay
