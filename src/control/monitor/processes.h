// The processor time of marked processes: whose ASSAY_TREE names our job, and of other jobs of assay.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>

namespace assay {

struct MarkedTime {
  double own = 0;         // seconds, also of processes that have ended: never falls
  double other_runs = 0;  // the same of processes that carry another mark
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
    pid_t parent = 0;
    double seconds = 0;  // with the children it has waited for
  };
  Whose whose(pid_t pid) const;
  void look_at(pid_t pid, Known& known) const;
  void keep_times_of_ended();

  std::filesystem::path proc_;
  std::string tree_mark_;
  std::map<pid_t, Known> known_;
  MarkedTime ended_;
  uint64_t round_ = 0;
};

}  // namespace assay
