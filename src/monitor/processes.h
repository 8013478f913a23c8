// The processor time of marked processes: whose ASSAY_TREE names our job, and of other jobs of assay.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>

namespace assay {

struct MarkedTime {
  double own = 0;         // seconds, of live processes and the children they have waited for
  double other_runs = 0;  // of processes that carry another mark
};

class ProcessTimes {
 public:
  ProcessTimes(std::filesystem::path proc, std::string tree_mark);
  // An environment is read when a process is first seen and once more at the next look, since it may have become
  // another program meanwhile; times are read of marked processes only. So a host with thousands of processes costs
  // little.
  MarkedTime read();

 private:
  enum class Whose { Ours, OtherRun, Foreign };
  struct Known {
    Whose whose = Whose::Foreign;
    int looks = 0;
    uint64_t seen = 0;
  };
  Whose whose(pid_t pid) const;
  double seconds_of(pid_t pid) const;

  std::filesystem::path proc_;
  std::string tree_mark_;
  std::map<pid_t, Known> known_;
  uint64_t round_ = 0;
};

}  // namespace assay
