#include "comm/hosts_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "comm/reduce.h"
#include "comm/shm_stream.h"
#include "comm/shm_transport.h"

namespace assay::comm {

namespace {

constexpr int64_t kChunk = 4 << 20;  // bytes of a member's data in one round
constexpr int kInFlight = 3;         // rounds whose bytes are on the network at once

enum HostsChannel { kPartial = 16, kFinished = 17, kCopies = 18 };

std::vector<int> same_place(const std::vector<int>& ranks, int local, int local_size) {
  std::vector<int> chosen;
  for (size_t i = static_cast<size_t>(local); i < ranks.size(); i += static_cast<size_t>(local_size)) {
    chosen.push_back(ranks[i]);
  }
  return chosen;
}

}  // namespace

// One round of a sum: the members' pieces of this member's share, and where partial and final results lie.
struct HostsTransport::Share {
  int64_t count = 0;  // elements
  std::vector<std::byte> pieces;
  std::vector<std::byte> partial;
  std::vector<std::byte> result;
  NetLinks::Transfers sends, receives;
};

HostsTransport::HostsTransport(std::shared_ptr<NetFabric> fabric, std::vector<int> ranks, int index, int local_size,
                               uint64_t number, const std::string& name, bool spin, Guard& guard)
    : fabric_(std::move(fabric)),
      ranks_(std::move(ranks)),
      number_(number),
      name_(fmt::format("{}-{}", name, index / local_size)),
      num_hosts_(static_cast<int>(ranks_.size()) / local_size),
      host_(index / local_size),
      local_(index % local_size),
      local_size_(local_size),
      shm_(open_shm_group(name_, local_, local_size, spin, guard)),
      across_(fabric_, same_place(ranks_, local_, local_size), host_, number),
      all_(fabric_, ranks_, index, number) {}

void HostsTransport::run(const Call& call, Guard& guard) {
  if (call.kind == CallKind::Barrier) return barrier(guard);
  if (call.count == 0) return;
  switch (call.kind) {
    case CallKind::AllReduce: return all_reduce(call, guard);
    case CallKind::ReduceScatter: return reduce_scatter(call, guard);
    case CallKind::AllGather: return all_gather(call, guard);
    case CallKind::Broadcast: return broadcast(call, guard);
    case CallKind::AllToAll: return all_to_all(call, guard);
    default: return;
  }
}

// Host 0 adds up its members' pieces and hands the partial sum to host 1, which goes on, and so forth: the sum is taken
// in the order of ranks, as on one host. The last host has the result and gives it to `home`, or to everybody.
void HostsTransport::begin_share(Share& share, const Call& call, int home, bool everywhere, Guard& guard) {
  const NetLinks& links = across_.links();
  const auto width = static_cast<int64_t>(size_of(call.type));
  const auto partial_bytes = share.count * static_cast<int64_t>(size_of(partial_type(call.type)));
  share.partial.resize(static_cast<size_t>(partial_bytes));
  if (everywhere || home == host_ || host_ + 1 == num_hosts_) {
    share.result.resize(static_cast<size_t>(share.count * width));
  }
  if (host_ > 0) {
    NetLinks::Transfers before;
    links.receive(before, host_ - 1, links.slot_of(kPartial, call), share.partial.data(), partial_bytes);
    NetLinks::wait_all(before, guard);
  }
  std::vector<const void*> inputs;
  for (int member = 0; member < local_size_; ++member)
    inputs.push_back(share.pieces.data() + member * share.count * width);
  combine_partial(share.partial.data(), host_ > 0, inputs, share.count, call.type, call.op);
  const uint64_t slot = links.slot_of(kFinished, call);
  if (host_ + 1 < num_hosts_) {
    if (everywhere || home == host_) {
      links.receive(share.receives, num_hosts_ - 1, slot, share.result.data(), share.count * width);
    }
    return links.send(share.sends, host_ + 1, links.slot_of(kPartial, call), share.partial.data(), partial_bytes);
  }
  finish_partial(share.partial.data(), share.result.data(), share.count, call.type);
  for (int host = 0; host + 1 < num_hosts_; ++host) {
    if (everywhere || home == host) links.send(share.sends, host, slot, share.result.data(), share.count * width);
  }
}

void HostsTransport::end_share(Share& share, Guard& guard) {
  NetLinks::wait_all(share.receives, guard);
  NetLinks::wait_all(share.sends, guard);
}

// Rounds of a chunk each: pieces are exchanged within the host, summed across hosts, and the results put together
// within the host again. A few rounds are on the network at once.
void HostsTransport::all_reduce(const Call& call, Guard& guard) {
  const auto width = static_cast<int64_t>(size_of(call.type));
  const int64_t per_share = std::max<int64_t>(kChunk / width / local_size_ / 64 * 64, 64);
  const int64_t per_chunk = per_share * local_size_;
  const int64_t chunks = (call.count + per_chunk - 1) / per_chunk;
  auto* data = static_cast<std::byte*>(call.output);
  // The last chunk may be shorter; it goes through memory of our own, filled up with zeros to equal shares.
  const int64_t rest = call.count - (chunks - 1) * per_chunk;
  const int64_t rest_share = (rest + local_size_ * 64 - 1) / (local_size_ * 64) * 64;
  std::vector<std::byte> tail(static_cast<size_t>(rest_share * local_size_ * width));
  std::memcpy(tail.data(), data + (chunks - 1) * per_chunk * width, static_cast<size_t>(rest * width));
  const auto memory = [&](int64_t chunk) {
    return chunk + 1 < chunks ? data + chunk * per_chunk * width : tail.data();
  };
  const auto share_count = [&](int64_t chunk) { return chunk + 1 < chunks ? per_share : rest_share; };
  std::vector<Share> shares(kInFlight + 1);
  for (int64_t round = 0; round < chunks + kInFlight; ++round) {
    if (round < chunks) {
      Share& share = shares[static_cast<size_t>(round % (kInFlight + 1))];
      share.count = share_count(round);
      share.pieces.resize(static_cast<size_t>(share.count * width * local_size_));
      shm_->run({.kind = CallKind::AllToAll,
                 .input = memory(round),
                 .output = share.pieces.data(),
                 .count = share.count,
                 .type = call.type},
                guard);
      begin_share(share, call, 0, true, guard);
    }
    if (round >= kInFlight) {
      const int64_t chunk = round - kInFlight;
      Share& share = shares[static_cast<size_t>(chunk % (kInFlight + 1))];
      end_share(share, guard);
      shm_->run({.kind = CallKind::AllGather,
                 .input = share.result.data(),
                 .output = memory(chunk),
                 .count = share.count,
                 .type = call.type},
                guard);
    }
  }
  std::memcpy(data + (chunks - 1) * per_chunk * width, tail.data(), static_cast<size_t>(rest * width));
}

// The parts of each host's members, host by host: within this host member l collects the pieces of part l, which then
// go along the hosts and home.
void HostsTransport::reduce_scatter(const Call& call, Guard& guard) {
  const auto width = static_cast<int64_t>(size_of(call.type));
  const int64_t part = call.part_bytes();
  std::vector<Share> shares(static_cast<size_t>(num_hosts_));
  for (int home = 0; home < num_hosts_; ++home) {
    Share& share = shares[static_cast<size_t>(home)];
    share.count = call.count;
    share.pieces.resize(static_cast<size_t>(part * local_size_));
    shm_->run({.kind = CallKind::AllToAll,
               .input = static_cast<const std::byte*>(call.input) + home * local_size_ * part,
               .output = share.pieces.data(),
               .count = call.count,
               .type = call.type},
              guard);
    begin_share(share, call, home, false, guard);
    share.pieces = {};
  }
  for (Share& share : shares) end_share(share, guard);
  std::memcpy(call.output, shares[static_cast<size_t>(host_)].result.data(), static_cast<size_t>(call.count * width));
}

// Member l gets what the members l of the other hosts have; then each host puts its parts together.
void HostsTransport::all_gather(const Call& call, Guard& guard) {
  const int64_t part = call.part_bytes();
  std::vector<std::byte> column(static_cast<size_t>(part * num_hosts_));
  Call across = call;
  across.output = column.data();
  across_.run(across, guard);
  for (int host = 0; host < num_hosts_; ++host) {
    shm_->run({.kind = CallKind::AllGather,
               .input = column.data() + host * part,
               .output = static_cast<std::byte*>(call.output) + host * local_size_ * part,
               .count = call.count,
               .type = call.type},
              guard);
  }
}

void HostsTransport::broadcast(const Call& call, Guard& guard) {
  const int root_local = call.root % local_size_;
  Call inner = call;
  if (local_ == root_local) {
    inner.root = call.root / local_size_;
    across_.run(inner, guard);
  }
  inner.root = root_local;
  shm_->run(inner, guard);
}

// Within the host by shared memory, to all others directly.
void HostsTransport::all_to_all(const Call& call, Guard& guard) {
  const int64_t part = call.part_bytes();
  const NetLinks& links = all_.links();
  const uint64_t slot = links.slot_of(kCopies, call);
  const auto* input = static_cast<const std::byte*>(call.input);
  auto* output = static_cast<std::byte*>(call.output);
  NetLinks::Transfers transfers;
  for (int i = 1; i < links.size(); ++i) {
    const int to = (links.index() + i) % links.size();
    const int from = (links.index() + links.size() - i) % links.size();
    if (from / local_size_ != host_) links.receive(transfers, from, slot, output + from * part, part);
    if (to / local_size_ != host_) links.send(transfers, to, slot, input + to * part, part);
  }
  const int64_t own = host_ * local_size_ * part;
  shm_->run({.kind = CallKind::AllToAll,
             .input = input + own,
             .output = output + own,
             .count = call.count,
             .type = call.type},
            guard);
  NetLinks::wait_all(transfers, guard);
}

void HostsTransport::barrier(Guard& guard) {
  shm_->barrier(guard);
  if (local_ == 0) across_.run({.kind = CallKind::Barrier}, guard);
  shm_->barrier(guard);
}

std::unique_ptr<ByteStream> HostsTransport::stream(int peer) {
  if (peer / local_size_ == host_) return std::make_unique<ShmStream>(shm_, peer % local_size_);
  return std::make_unique<NetStream>(fabric_, ranks_[static_cast<size_t>(peer)], number_);
}

std::shared_ptr<CommBuffer> HostsTransport::allocate(int64_t bytes, Guard& guard) {
  shm_->run({.kind = CallKind::Allocate, .count = bytes}, guard);
  return open_shm_buffer(fmt::format("{}-{}", name_, ++num_buffers_), *shm_, bytes, guard);
}

}  // namespace assay::comm
