// Messages between two members of a group: tags, order, and progress on their own, over byte streams. Knows no
// transport.
//
// A message is a header and its bytes in a stream. Each direction of a pair has a thread, begun when the pair is first
// used: the receiver's takes messages out of the stream whether somebody asks for them already or not, so a sender
// never waits for a receive that stands behind another send.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/call.h"
#include "comm/pending.h"

namespace assay::comm {

// Bytes to and from one peer, in order. One thread writes, another one reads.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  virtual void write(const void* data, size_t bytes, Guard& guard) = 0;
  virtual void read(void* data, size_t bytes, Guard& guard) = 0;
  // Writes all of both without waiting, or nothing.
  virtual bool try_write(const void* head, size_t head_bytes, const void* data, size_t bytes) = 0;
};

class Messenger {
 public:
  struct Setup {
    Control* control = nullptr;
    const std::atomic<bool>* stop = nullptr;
    std::function<std::unique_ptr<ByteStream>(int peer)> open;  // to a member of the group
    Activity group;  // whose, for errors; ranks: this process, then the members
    std::shared_ptr<WaitClock> clock;
  };
  explicit Messenger(Setup setup);
  ~Messenger();  // the flag to stop must be set: whatever waits ends

  Pending send(const void* data, int64_t bytes, int to, int tag);
  Pending receive(void* data, int64_t bytes, int from, int tag);

 private:
  struct Link;
  Link& link_to(int peer);
  void open(int peer);
  Activity describe(const char* what, int peer, int tag, int64_t bytes) const;
  void run_outbox(Link& link);
  void run_inbox(Link& link);
  void take_message(Link& link, Guard& guard);

  const Setup setup_;
  std::map<int, std::unique_ptr<Link>> links_;
};

}  // namespace assay::comm
