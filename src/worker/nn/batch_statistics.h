// Batch normalisation over the batches of several processes: while a SharedStatistics lives, the moments of a batch and
// the sums of its backward pass are those of all processes of the group together, as if one had all of it.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"

namespace assay {

class SharedStatistics {
 public:
  explicit SharedStatistics(comm::Communicator& group);  // borrowed; for the calling thread
  ~SharedStatistics();
  SharedStatistics(const SharedStatistics&) = delete;
  SharedStatistics& operator=(const SharedStatistics&) = delete;

 private:
  comm::Communicator* before_;
};

bool shares_statistics();  // the calling thread is in such a scope, with more than one process

struct BatchMoments {
  double count = 0;
  std::vector<double> mean, variance;  // biased
};

// Over all processes of the scope that the calling thread is in; unchanged outside of one.
BatchMoments shared_moments(BatchMoments local);
// The sums of all processes, in place.
void share_sums(std::vector<double>& values);

}  // namespace assay
