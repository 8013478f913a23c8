// A group on several hosts with the same number of members on each, host by host: shared memory within a host, the
// network between them. Member l of a host talks to member l of the others, so that all of them use the network at
// once, each for its share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/net_group.h"
#include "comm/shm_group.h"
#include "comm/transport.h"

namespace assay::comm {

class HostsTransport : public Transport {
 public:
  // ranks[h * local_size + l] is member l of host h.
  HostsTransport(std::shared_ptr<NetFabric> fabric, std::vector<int> ranks, int index, int local_size, uint64_t number,
                 const std::string& name, bool spin, Guard& guard);
  void run(const Call& call, Guard& guard) override;
  std::unique_ptr<ByteStream> stream(int peer) override;
  std::shared_ptr<CommBuffer> allocate(int64_t bytes, Guard& guard) override;
  std::string transport() const override { return "shared memory and gloo"; }

 private:
  struct Share;
  void all_reduce(const Call& call, Guard& guard);
  void reduce_scatter(const Call& call, Guard& guard);
  void all_gather(const Call& call, Guard& guard);
  void broadcast(const Call& call, Guard& guard);
  void all_to_all(const Call& call, Guard& guard);
  void barrier(Guard& guard);
  // The sum over all hosts of what this member is responsible for. The result comes to host `home`, or everywhere.
  void begin_share(Share& share, const Call& call, int home, bool everywhere, Guard& guard);
  void end_share(Share& share, Guard& guard);

  const std::shared_ptr<NetFabric> fabric_;
  const std::vector<int> ranks_;
  const uint64_t number_;
  const std::string name_;
  const int num_hosts_;
  const int host_;
  const int local_;
  const int local_size_;
  const std::shared_ptr<ShmGroup> shm_;
  NetGroup across_;  // member `local_` of every host
  NetGroup all_;
  int num_buffers_ = 0;
};

}  // namespace assay::comm
