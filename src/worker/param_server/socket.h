// TCP with deadlines: no call waits longer than it was told, and each can be woken. Knows frames, not their meaning.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/server_role.h"
#include "param_server/wire.h"

namespace assay::ps {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;
inline Deadline after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}
inline constexpr Deadline kNever = Deadline::max();

// The peer has closed the connection, or it broke.
class ConnectionLost : public CommunicationError {
 public:
  using CommunicationError::CommunicationError;
};

// Listens at the endpoint; port 0 takes a free one. Throws InfrastructureError naming it when it is taken.
FileDescriptor listen_at(const Endpoint& endpoint);
int port_of(const FileDescriptor& listener);
// The next peer and its address; an empty descriptor when the deadline has passed or wake_fd is readable.
FileDescriptor accept_peer(const FileDescriptor& listener, Deadline deadline, int wake_fd, std::string& peer);
// One attempt. Throws ConnectionLost.
FileDescriptor connect_to(const Endpoint& endpoint, Deadline deadline);

struct Frame {
  FrameHeader header;
  std::string payload;
};
void send_frame(int fd, uint16_t kind, uint64_t request_id, std::string_view payload, Deadline deadline);
// `first` is the limit until the frame begins, `stall_s` the longest pause within it. Memory grows with the bytes that
// have come, not with what the header claims. Throws ConnectionLost, TimeoutError at a limit, InterruptedError when
// wake_fd became readable, CommunicationError for what is not a frame.
struct ReceiveLimits {
  Deadline first = kNever;
  double stall_s = 30;
  uint64_t max_payload = kSmallFrame;
  int wake_fd = -1;
};
Frame receive_frame(int fd, const ReceiveLimits& limits);

}  // namespace assay::ps
