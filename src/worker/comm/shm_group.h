// Collectives among processes that share memory. Knows the members of one host by index; what they are called and who
// else there is it does not know.
//
// Each call begins with every member writing what it wants into its slot, and a barrier. Small inputs travel in the
// slot itself. Memory from make_buffer() is read and written in place. Everything else goes through staging areas in
// chunks, so that copying in, reducing and copying out overlap.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/call.h"
#include "comm/futex.h"
#include "comm/segment.h"

namespace assay::comm {

// A byte stream from one member to another, in shared memory.
struct ShmRing {
  SharedWord written, read;  // counts of changes, to sleep on
  alignas(64) std::atomic<uint64_t> head;
  alignas(64) std::atomic<uint64_t> tail;
  static constexpr size_t kBytes = 256 << 10;
  alignas(64) std::byte data[kBytes];
};

// What all members count together. All zero at the beginning.
struct ShmCounters {
  SharedWord generation;  // of barriers
  SharedWord finished;    // calls whose items are all done
  alignas(64) std::atomic<uint32_t> arrivals;
  alignas(64) std::atomic<uint64_t> next_item;
  alignas(64) std::atomic<uint64_t> items_done;
};

class ShmGroup {
 public:
  // `spin`: whether every member has a core of its own. The segment is of segment_size() and zero at first.
  ShmGroup(std::shared_ptr<Segment> segment, int index, int size, bool spin);
  static size_t segment_size(int size);

  int index() const { return index_; }
  int size() const { return size_; }
  bool spin() const { return spin_; }

  void run(const Call& call, Guard& guard);
  void barrier(Guard& guard);
  ShmRing& ring(int from, int to) const;

  // Memory of every member, of `bytes` each, in one segment. The buffer forgets itself here when it is freed.
  std::shared_ptr<CommBuffer> add_buffer(std::shared_ptr<Segment> segment, int64_t bytes);
  static int64_t buffer_stride(int64_t bytes);

 private:
  friend class ShmBuffer;
  struct Slot;
  struct SharedAddress;  // where in shared memory a pointer points
  struct Registry;

  Slot& slot(int member) const;
  std::byte* stage(int member, uint64_t chunk) const;
  std::byte* result(uint64_t chunk) const;
  void publish_call(const Call& call);
  void check_same(const Call& call, Guard& guard) const;
  SharedAddress shared_address_of(const void* data, int64_t bytes) const;
  // The members' memory for this call, one pointer each, when all of it lies in the same buffer; else empty. All
  // members come to the same conclusion, since each of them has mapped a buffer that it is in itself.
  std::vector<std::byte*> members_memory(bool output) const;

  void run_small(const Call& call) const;
  bool run_direct(const Call& call, Guard& guard);
  void direct_all_reduce(const Call& call, const std::vector<std::byte*>& memory, Guard& guard);
  void direct_copies(const Call& call, const std::vector<std::byte*>& inputs) const;
  void run_staged(const Call& call, Guard& guard);
  void staged_all_reduce(const Call& call, Guard& guard);
  void staged_exchange(const Call& call, Guard& guard);
  void staged_all_gather(const Call& call, Guard& guard);
  void staged_broadcast(const Call& call, Guard& guard);

  const std::shared_ptr<Segment> segment_;
  const int index_;
  const int size_;
  const bool spin_;
  const int64_t chunk_bytes_;  // of what goes through a staging area at once
  ShmCounters* counters_ = nullptr;
  // How far those are at the beginning of a call; the same on all members.
  uint32_t generation_ = 0;
  uint32_t num_finished_ = 0;
  uint64_t first_item_ = 0;
  uint64_t items_done_ = 0;
  uint64_t call_ = 0;  // its parity chooses the slot: nobody reads the slots of the call before the last
  std::shared_ptr<Registry> registry_;
};

// The part of `count` elements that member `index` of `size` works on; cut at cache lines.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};
Range share_of(int64_t count, size_t element_bytes, int index, int size);

}  // namespace assay::comm
