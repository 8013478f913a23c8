// Collectives among the processes of a group. Knows bytes and element types, not tensors, models or configuration.
//
// Every member of a group calls the same collectives in the same order; each call names what it is for, so that a
// watchdog can say who waits where. Results are bitwise the same on every member and in every run: sums are taken in
// the order of ranks. Whatever goes wrong - a lost peer, a time limit, a peer that failed - throws CommunicationError,
// which names the lost rank where it is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay::comm {

enum class DType { F64, F32, BF16, F16, I64, I32, U8 };
size_t size_of(DType type);

// BF16 and F16 are added in float32 and rounded once.
enum class ReduceOp { Sum, Min, Max };

// A collective in progress. Copies are the same collective.
class Pending {
 public:
  struct State;
  Pending() = default;  // nothing to wait for
  explicit Pending(std::shared_ptr<State> state) : state_(std::move(state)) {}
  // Returns when it is done; throws what it failed with.
  void wait();
  bool done() const;

 private:
  std::shared_ptr<State> state_;
};

// Memory of one member. Where transport is shared memory, peers read and write it directly, so that collectives on it
// copy nothing. Freed with the last reference.
class CommBuffer {
 public:
  explicit CommBuffer(int64_t bytes);
  virtual ~CommBuffer();
  CommBuffer(const CommBuffer&) = delete;
  CommBuffer& operator=(const CommBuffer&) = delete;
  virtual void* data() const = 0;
  int64_t size() const { return bytes_; }  // bytes

  // Told of every buffer that comes (its bytes) and goes (minus its bytes), in any thread: an allocator of tensors does
  // not see them otherwise. One for the process.
  static void set_counter(void (*counter)(int64_t bytes));

 private:
  const int64_t bytes_;
};

// One group of processes, this one among them. Calls of one process come from one thread at a time. Waiting calls and
// those with a future keep one order, that in which they were made. A group of one does nothing but copy. Destroyed
// with calls in progress, it abandons them: their futures throw.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;  // in the group
  virtual int size() const = 0;
  virtual const std::vector<int>& world_ranks() const = 0;
  virtual const std::string& name() const = 0;
  virtual std::string transport() const = 0;  // "shared memory", "gloo", "shared memory and gloo", "none"

  // --- with a future: memory must stay, and stay untouched, until it is done
  virtual Pending start_all_reduce(void* data, int64_t count, DType type, ReduceOp op = ReduceOp::Sum) = 0;
  // input: size() parts of `count` elements; output: this member's part of the sum. May be that part of the input.
  virtual Pending start_reduce_scatter(const void* input, void* output, int64_t count, DType type,
                                       ReduceOp op = ReduceOp::Sum) = 0;
  // input: `count` elements; output: those of all members in order. The input may be this member's part of the output.
  virtual Pending start_all_gather(const void* input, void* output, int64_t count, DType type) = 0;
  virtual Pending start_broadcast(void* data, int64_t count, DType type, int root) = 0;
  // input: size() parts of `count` elements, one for each member; output: one from each.
  virtual Pending start_all_to_all(const void* input, void* output, int64_t count, DType type) = 0;
  // Between two members. Messages of one pair and tag arrive in order; sends and receives make progress on their own,
  // beside each other and beside collectives, so that two members may both send first. Both give the same size.
  virtual Pending start_send(const void* data, int64_t bytes, int to, int tag) = 0;
  virtual Pending start_receive(void* data, int64_t bytes, int from, int tag) = 0;
  virtual Pending start_barrier() = 0;

  // --- waiting; runs on the calling thread when no call is in progress
  virtual void all_reduce(void* data, int64_t count, DType type, ReduceOp op = ReduceOp::Sum) {
    start_all_reduce(data, count, type, op).wait();
  }
  virtual void reduce_scatter(const void* input, void* output, int64_t count, DType type, ReduceOp op = ReduceOp::Sum) {
    start_reduce_scatter(input, output, count, type, op).wait();
  }
  virtual void all_gather(const void* input, void* output, int64_t count, DType type) {
    start_all_gather(input, output, count, type).wait();
  }
  virtual void broadcast(void* data, int64_t count, DType type, int root) {
    start_broadcast(data, count, type, root).wait();
  }
  virtual void all_to_all(const void* input, void* output, int64_t count, DType type) {
    start_all_to_all(input, output, count, type).wait();
  }
  virtual void send(const void* data, int64_t bytes, int to, int tag) { start_send(data, bytes, to, tag).wait(); }
  virtual void receive(void* data, int64_t bytes, int from, int tag) { start_receive(data, bytes, from, tag).wait(); }
  virtual void barrier() { start_barrier().wait(); }

  // Memory for the buffers that are reduced and gathered again and again. A collective call: every member asks for the
  // same size, in the same order as other calls.
  virtual std::shared_ptr<CommBuffer> allocate(int64_t bytes) = 0;

  // What the next collectives are for, such as "gradients of step 12": shown by the watchdog. Cheap.
  virtual void set_purpose(const std::string& purpose) = 0;
  // Seconds that waiting calls and waits for futures have cost the calling thread, and bytes given to collectives.
  virtual double seconds_waited() const = 0;
  virtual int64_t bytes_moved() const = 0;
};

}  // namespace assay::comm
