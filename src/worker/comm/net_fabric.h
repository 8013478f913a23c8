// Gloo's connections among all processes of a job: bytes from one rank to another, matched by slot. The only place that
// knows Gloo.
//
// Gloo's own collectives are not used: its all_reduce adds in the order of a ring, which differs from member to member
// and from the order of other transports, and it has no bfloat16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "comm/call.h"

namespace assay::comm {

// A send or a receive in progress. Its memory must stay; destroyed before its end, it is given up.
class NetTransfer {
 public:
  virtual ~NetTransfer() = default;
  virtual void wait(Guard& guard) = 0;  // restarts the guard
};

class NetFabric {
 public:
  // Connects to all others; a collective call. `address` is ours. Throws CommunicationError.
  NetFabric(Control& control, const std::string& address);
  ~NetFabric();

  // Transfers between two ranks that carry the same slot are matched in the order in which they were started; sizes
  // must be equal, and above 0.
  std::unique_ptr<NetTransfer> send(int rank, uint64_t slot, const void* data, size_t bytes);
  std::unique_ptr<NetTransfer> receive(int rank, uint64_t slot, void* data, size_t bytes);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
  friend class GlooTransfer;
};

}  // namespace assay::comm
