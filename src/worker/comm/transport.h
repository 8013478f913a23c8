// How the members of one group move bytes: one implementation a transport. Calls come one at a time, in the same order
// on every member.
#pragma once

#include <memory>
#include <string>

#include "comm/call.h"
#include "comm/messages.h"

namespace assay::comm {

class Transport {
 public:
  virtual ~Transport() = default;
  virtual void run(const Call& call, Guard& guard) = 0;
  virtual std::unique_ptr<ByteStream> stream(int peer) = 0;
  virtual std::shared_ptr<CommBuffer> allocate(int64_t bytes, Guard& guard) = 0;
  virtual std::string transport() const = 0;
};

// Ordinary memory, zero at first, for transports that do not share any.
std::shared_ptr<CommBuffer> ordinary_buffer(int64_t bytes);

}  // namespace assay::comm
