// Collectives over the network. Every member sends to every other directly: as many bytes as a ring, fewer steps, and
// sums in the order of members.
#pragma once

#include <memory>
#include <vector>

#include "comm/net_fabric.h"
#include "comm/transport.h"

namespace assay::comm {

// Transfers among some ranks, in pieces; what was started is waited for in order.
class NetLinks {
 public:
  // `number` is that of the group. Slots are of the group, the channel, and what is called: members that call different
  // things never mix their bytes, they wait, and the watchdog says so.
  NetLinks(std::shared_ptr<NetFabric> fabric, std::vector<int> ranks, int index, uint64_t number)
      : fabric_(std::move(fabric)), ranks_(std::move(ranks)), index_(index), number_(number) {}
  int index() const { return index_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  uint64_t slot_of(int channel, const Call& call) const;

  using Transfers = std::vector<std::unique_ptr<NetTransfer>>;
  void send(Transfers& to, int member, uint64_t slot, const void* data, int64_t bytes) const;  // nothing for 0 bytes
  void receive(Transfers& to, int member, uint64_t slot, void* data, int64_t bytes) const;
  static void wait_all(Transfers& transfers, Guard& guard);

  static constexpr int64_t kPiece = 512 << 10;  // large ones go in pieces, so that work on one overlaps with the next

 private:
  const std::shared_ptr<NetFabric> fabric_;
  const std::vector<int> ranks_;
  const int index_;
  const uint64_t number_;
};

class NetGroup {
 public:
  NetGroup(std::shared_ptr<NetFabric> fabric, std::vector<int> ranks, int index, uint64_t number)
      : links_(std::move(fabric), std::move(ranks), index, number) {}
  void run(const Call& call, Guard& guard);
  const NetLinks& links() const { return links_; }

 private:
  void all_reduce_small(const Call& call, Guard& guard);
  void all_reduce(const Call& call, Guard& guard);
  void reduce_scatter(const Call& call, Guard& guard);
  void all_gather(const Call& call, Guard& guard);
  void broadcast(const Call& call, Guard& guard);
  void all_to_all(const Call& call, Guard& guard);
  void barrier(const Call& call, Guard& guard);

  const NetLinks links_;
};

class NetStream : public ByteStream {
 public:
  NetStream(std::shared_ptr<NetFabric> fabric, int rank, uint64_t number)
      : fabric_(std::move(fabric)), rank_(rank), slot_(number << 40 | uint64_t{0xff} << 32) {}
  void write(const void* data, size_t bytes, Guard& guard) override;
  void read(void* data, size_t bytes, Guard& guard) override;
  bool try_write(const void*, size_t, const void*, size_t) override { return false; }

 private:
  const std::shared_ptr<NetFabric> fabric_;
  const int rank_;
  const uint64_t slot_;
};

class NetEngine : public Transport {
 public:
  NetEngine(std::shared_ptr<NetFabric> fabric, std::vector<int> ranks, int index, uint64_t number)
      : fabric_(fabric), ranks_(ranks), number_(number), group_(std::move(fabric), std::move(ranks), index, number) {}
  void run(const Call& call, Guard& guard) override { group_.run(call, guard); }
  std::unique_ptr<ByteStream> stream(int peer) override {
    return std::make_unique<NetStream>(fabric_, ranks_[static_cast<size_t>(peer)], number_);
  }
  std::shared_ptr<CommBuffer> allocate(int64_t bytes, Guard&) override { return ordinary_buffer(bytes); }
  std::string transport() const override { return "gloo"; }

 private:
  const std::shared_ptr<NetFabric> fabric_;
  const std::vector<int> ranks_;
  const uint64_t number_;
  NetGroup group_;
};

}  // namespace assay::comm
