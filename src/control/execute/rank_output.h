// What the ranks of one launch wrote: their records and logs. The files go on over attempts and restarts, so it knows
// how long they were before.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "plan/plan.h"

namespace assay {

class RankOutput {
 public:
  // Of a launch that is about to begin.
  RankOutput(const StepRanks& ranks, std::filesystem::path step_folder);
  // Why a rank failed, in its own words: its last FAILURE record, or else the last log line that begins with "error: ".
  std::string failure_message(int rank) const;
  // A rank of this or an earlier launch has written this event.
  bool has_event(const char* name) const;

 private:
  std::filesystem::path folder_;
  std::map<int, uintmax_t> log_sizes_;
  std::map<int, size_t> num_records_;
};

}  // namespace assay
