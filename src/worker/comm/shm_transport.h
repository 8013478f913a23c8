// A group whose members are all on one host.
#pragma once

#include "comm/shm_group.h"
#include "comm/transport.h"

namespace assay::comm {

// The shared memory of some members: `name` is the same on all of them and unique in the job.
std::shared_ptr<ShmGroup> open_shm_group(const std::string& name, int index, int size, bool spin, Guard& guard);
std::shared_ptr<CommBuffer> open_shm_buffer(const std::string& name, ShmGroup& group, int64_t bytes, Guard& guard);

class ShmTransport : public Transport {
 public:
  ShmTransport(std::string name, int index, int size, bool spin, Guard& guard);
  void run(const Call& call, Guard& guard) override;
  std::unique_ptr<ByteStream> stream(int peer) override;
  std::shared_ptr<CommBuffer> allocate(int64_t bytes, Guard& guard) override;
  std::string transport() const override { return "shared memory"; }

 private:
  const std::string name_;
  const std::shared_ptr<ShmGroup> group_;
  int num_buffers_ = 0;
};

}  // namespace assay::comm
