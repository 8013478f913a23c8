// The byte stream between two members of one host.
#pragma once

#include "comm/messages.h"
#include "comm/shm_group.h"

namespace assay::comm {

class ShmStream : public ByteStream {
 public:
  // The group, and with it the memory, stays as long as the stream.
  ShmStream(std::shared_ptr<ShmGroup> group, int peer);
  void write(const void* data, size_t bytes, Guard& guard) override;
  void read(void* data, size_t bytes, Guard& guard) override;
  bool try_write(const void* head, size_t head_bytes, const void* data, size_t bytes) override;

 private:
  void put(const std::byte* data, size_t bytes);  // there is room
  const std::shared_ptr<ShmGroup> group_;
  ShmRing& out_;
  ShmRing& in_;
};

}  // namespace assay::comm
