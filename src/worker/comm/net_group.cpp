#include "comm/net_group.h"

#include <algorithm>
#include <cstring>

#include "comm/reduce.h"
#include "comm/shm_group.h"

namespace assay::comm {

namespace {

constexpr int64_t kSmall = 16 << 10;  // all_reduce of so many bytes takes one step instead of two

struct Piece {
  int64_t begin = 0;  // bytes
  int64_t bytes = 0;
};

// A range of bytes in pieces; none for an empty one.
std::vector<Piece> pieces_of(int64_t begin, int64_t end) {
  std::vector<Piece> pieces;
  for (int64_t at = begin; at < end; at += NetLinks::kPiece)
    pieces.push_back({at, std::min(NetLinks::kPiece, end - at)});
  return pieces;
}

std::vector<Piece> pieces_of(const Call& call, int member, int size) {
  const Range share = share_of(call.count, size_of(call.type), member, size);
  const auto width = static_cast<int64_t>(size_of(call.type));
  return pieces_of(share.begin * width, share.end * width);
}

enum Channel { kData = 0, kResult = 1 };

}  // namespace

uint64_t NetLinks::slot_of(int channel, const Call& call) const {
  uint64_t hash = 1469598103934665603u;  // FNV-1a
  for (const uint64_t field :
       {static_cast<uint64_t>(call.kind), static_cast<uint64_t>(call.type), static_cast<uint64_t>(call.op),
        static_cast<uint64_t>(call.root), static_cast<uint64_t>(call.count)}) {
    hash = (hash ^ field) * 1099511628211u;
    hash ^= hash >> 29;
  }
  return number_ << 40 | static_cast<uint64_t>(channel) << 32 | (hash & 0xffffffffu);
}

void NetLinks::send(Transfers& to, int member, uint64_t slot, const void* data, int64_t bytes) const {
  if (bytes > 0) {
    to.push_back(fabric_->send(ranks_[static_cast<size_t>(member)], slot, data, static_cast<size_t>(bytes)));
  }
}

void NetLinks::receive(Transfers& to, int member, uint64_t slot, void* data, int64_t bytes) const {
  if (bytes > 0) {
    to.push_back(fabric_->receive(ranks_[static_cast<size_t>(member)], slot, data, static_cast<size_t>(bytes)));
  }
}

void NetLinks::wait_all(Transfers& transfers, Guard& guard) {
  for (const auto& transfer : transfers) transfer->wait(guard);
  transfers.clear();
}

void NetGroup::run(const Call& call, Guard& guard) {
  if (call.kind == CallKind::Barrier) return barrier(call, guard);
  if (call.count == 0) return;
  switch (call.kind) {
    case CallKind::AllReduce:
      return call.part_bytes() <= kSmall ? all_reduce_small(call, guard) : all_reduce(call, guard);
    case CallKind::ReduceScatter: return reduce_scatter(call, guard);
    case CallKind::AllGather: return all_gather(call, guard);
    case CallKind::Broadcast: return broadcast(call, guard);
    case CallKind::AllToAll: return all_to_all(call, guard);
    default: return;
  }
}

void NetGroup::all_reduce_small(const Call& call, Guard& guard) {
  const int64_t bytes = call.part_bytes();
  const uint64_t slot = links_.slot_of(kData, call);
  std::vector<std::byte> memory(static_cast<size_t>(bytes * links_.size()));
  NetLinks::Transfers transfers;
  std::vector<const void*> inputs;
  for (int member = 0; member < links_.size(); ++member) {
    std::byte* buffer = memory.data() + member * bytes;
    inputs.push_back(member == links_.index() ? call.input : buffer);
    if (member == links_.index()) continue;
    links_.receive(transfers, member, slot, buffer, bytes);
    links_.send(transfers, member, slot, call.input, bytes);
  }
  NetLinks::wait_all(transfers, guard);
  combine(inputs, {call.output}, call.count, call.type, call.op);
}

namespace {

// Reduces this member's bytes, [begin, end) of `data`, piece by piece as the others' come in. Two pieces are on their
// way at any time.
template <typename Done>
void reduce_as_they_come(const NetLinks& links, uint64_t slot, const Call& call, const std::byte* data,
                         std::byte* output, const std::vector<Piece>& pieces, Guard& guard, Done done) {
  const int size = links.size();
  const auto width = static_cast<int64_t>(size_of(call.type));
  const int64_t longest = pieces.empty() ? 0 : pieces.front().bytes;
  std::vector<std::byte> memory(static_cast<size_t>(2 * size * longest));
  const auto buffer = [&](size_t piece, int member) {
    return memory.data() + (static_cast<int64_t>(piece % 2) * size + member) * longest;
  };
  NetLinks::Transfers incoming[2];
  const auto begin_piece = [&](size_t piece) {
    if (piece >= pieces.size()) return;
    for (int member = 0; member < size; ++member) {
      if (member != links.index()) {
        links.receive(incoming[piece % 2], member, slot, buffer(piece, member), pieces[piece].bytes);
      }
    }
  };
  begin_piece(0);
  begin_piece(1);
  for (size_t piece = 0; piece < pieces.size(); ++piece) {
    NetLinks::wait_all(incoming[piece % 2], guard);
    std::vector<const void*> inputs;
    for (int member = 0; member < size; ++member) {
      inputs.push_back(member == links.index() ? data + pieces[piece].begin : buffer(piece, member));
    }
    std::byte* to = output + pieces[piece].begin;
    combine(inputs, {to}, pieces[piece].bytes / width, call.type, call.op);
    begin_piece(piece + 2);
    done(pieces[piece]);
  }
}

}  // namespace

// Every member reduces its share and sends the result to the others. A share of the others is overwritten by its result
// only after it was sent: the result is made of it.
void NetGroup::all_reduce(const Call& call, Guard& guard) {
  auto* data = static_cast<std::byte*>(call.output);
  const uint64_t slot = links_.slot_of(kData, call);
  const uint64_t result_slot = links_.slot_of(kResult, call);
  NetLinks::Transfers sends, receives;
  for (int i = 1; i < links_.size(); ++i) {
    const int member = (links_.index() + i) % links_.size();
    for (const Piece& piece : pieces_of(call, member, links_.size())) {
      links_.send(sends, member, slot, data + piece.begin, piece.bytes);
      links_.receive(receives, member, result_slot, data + piece.begin, piece.bytes);
    }
  }
  reduce_as_they_come(links_, slot, call, data, data, pieces_of(call, links_.index(), links_.size()), guard,
                      [&](const Piece& piece) {
                        for (int i = 1; i < links_.size(); ++i) {
                          const int member = (links_.index() + i) % links_.size();
                          links_.send(sends, member, result_slot, data + piece.begin, piece.bytes);
                        }
                      });
  NetLinks::wait_all(receives, guard);
  NetLinks::wait_all(sends, guard);
}

void NetGroup::reduce_scatter(const Call& call, Guard& guard) {
  const int64_t part = call.part_bytes();
  const auto* input = static_cast<const std::byte*>(call.input);
  const uint64_t slot = links_.slot_of(kData, call);
  NetLinks::Transfers sends;
  for (int i = 1; i < links_.size(); ++i) {
    const int member = (links_.index() + i) % links_.size();
    for (const Piece& piece : pieces_of(0, part)) {
      links_.send(sends, member, slot, input + member * part + piece.begin, piece.bytes);
    }
  }
  reduce_as_they_come(links_, slot, call, input + links_.index() * part, static_cast<std::byte*>(call.output),
                      pieces_of(0, part), guard, [](const Piece&) {});
  NetLinks::wait_all(sends, guard);
}

void NetGroup::all_gather(const Call& call, Guard& guard) {
  const int64_t part = call.part_bytes();
  auto* output = static_cast<std::byte*>(call.output);
  const uint64_t slot = links_.slot_of(kData, call);
  NetLinks::Transfers transfers;
  for (int i = 1; i < links_.size(); ++i) {
    const int member = (links_.index() + i) % links_.size();
    links_.receive(transfers, member, slot, output + member * part, part);
    links_.send(transfers, member, slot, call.input, part);
  }
  std::byte* own = output + links_.index() * part;
  if (own != call.input) std::memcpy(own, call.input, static_cast<size_t>(part));
  NetLinks::wait_all(transfers, guard);
}

// Large ones: the root sends every member its share, which that member passes on to the others; so the root sends its
// data twice, not once for each member.
void NetGroup::broadcast(const Call& call, Guard& guard) {
  auto* data = static_cast<std::byte*>(call.output);
  const uint64_t slot = links_.slot_of(kData, call);
  const uint64_t result_slot = links_.slot_of(kResult, call);
  const bool root = links_.index() == call.root;
  NetLinks::Transfers transfers, share, sends;
  if (links_.size() <= 3 || call.part_bytes() <= 4 * kSmall) {
    for (int member = 0; root && member < links_.size(); ++member) {
      if (member != call.root) links_.send(transfers, member, slot, data, call.part_bytes());
    }
    if (!root) links_.receive(transfers, call.root, slot, data, call.part_bytes());
    return NetLinks::wait_all(transfers, guard);
  }
  const std::vector<Piece> own = pieces_of(call, links_.index(), links_.size());
  for (int i = 1; i < links_.size(); ++i) {
    const int member = (links_.index() + i) % links_.size();
    for (const Piece& piece : pieces_of(call, member, links_.size())) {
      if (root) links_.send(sends, member, slot, data + piece.begin, piece.bytes);
      if (!root) links_.receive(transfers, member, result_slot, data + piece.begin, piece.bytes);
    }
  }
  if (!root) {
    for (const Piece& piece : own) links_.receive(share, call.root, slot, data + piece.begin, piece.bytes);
  }
  for (size_t i = 0; i < own.size(); ++i) {
    if (!root) share[i]->wait(guard);
    for (int member = 0; member < links_.size(); ++member) {
      if (member == links_.index() || member == call.root) continue;
      links_.send(sends, member, result_slot, data + own[i].begin, own[i].bytes);
    }
  }
  NetLinks::wait_all(transfers, guard);
  NetLinks::wait_all(sends, guard);
}

void NetGroup::all_to_all(const Call& call, Guard& guard) {
  const int64_t part = call.part_bytes();
  const auto* input = static_cast<const std::byte*>(call.input);
  auto* output = static_cast<std::byte*>(call.output);
  const uint64_t slot = links_.slot_of(kData, call);
  NetLinks::Transfers transfers;
  for (int i = 1; i < links_.size(); ++i) {
    const int to = (links_.index() + i) % links_.size();
    const int from = (links_.index() + links_.size() - i) % links_.size();
    links_.receive(transfers, from, slot, output + from * part, part);
    links_.send(transfers, to, slot, input + to * part, part);
  }
  std::memcpy(output + links_.index() * part, input + links_.index() * part, static_cast<size_t>(part));
  NetLinks::wait_all(transfers, guard);
}

// Round k: a word to the member 2^k further on. After the last one everybody has heard of everybody.
void NetGroup::barrier(const Call& call, Guard& guard) {
  const uint64_t slot = links_.slot_of(kData, call);
  for (int distance = 1; distance < links_.size(); distance *= 2) {
    char in = 0, out = 1;
    NetLinks::Transfers transfers;
    links_.receive(transfers, (links_.index() + links_.size() - distance) % links_.size(), slot, &in, 1);
    links_.send(transfers, (links_.index() + distance) % links_.size(), slot, &out, 1);
    NetLinks::wait_all(transfers, guard);
  }
}

void NetStream::write(const void* data, size_t bytes, Guard& guard) {
  if (bytes > 0) fabric_->send(rank_, slot_, data, bytes)->wait(guard);
}

void NetStream::read(void* data, size_t bytes, Guard& guard) {
  if (bytes > 0) fabric_->receive(rank_, slot_, data, bytes)->wait(guard);
}

}  // namespace assay::comm
