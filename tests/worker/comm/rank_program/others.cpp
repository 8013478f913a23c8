// Buffers, groups, order, messages, equal bits, and the ways to go wrong.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/hash.h"
#include "scenario.h"

namespace assay::rank_program {

using namespace comm;

namespace {

std::vector<float> filled(int64_t count, float value) { return std::vector<float>(static_cast<size_t>(count), value); }

void expect(bool condition, const std::string& what) {
  if (!condition) complain(what);
}

bool all_are(const float* data, int64_t count, float value) {
  for (int64_t i = 0; i < count; ++i) {
    if (data[i] != value) return false;
  }
  return true;
}

float sum_of_ranks(int size) { return static_cast<float>(size * (size + 1) / 2); }

}  // namespace

// Memory from allocate(), alone, in parts, beside ordinary memory, and after some of it was freed.
void check_buffers(World& world, const Arguments&) {
  auto group = world.group(all_ranks(world), "all");
  const int size = group->size();
  const auto mine = static_cast<float>(group->rank() + 1);
  const int64_t count = 300007;
  auto first = group->allocate(count * 4);
  auto second = group->allocate(count * 4 * size);
  expect(first->size() == count * 4, "the size of a buffer");
  auto* data = static_cast<float*>(first->data());
  auto* parts = static_cast<float*>(second->data());
  expect(all_are(data, count, 0), "fresh memory is zero");
  std::fill(data, data + count, mine);
  group->all_reduce(data, count, DType::F32);
  expect(all_are(data, count, sum_of_ranks(size)), "all_reduce in a buffer");
  // From an odd place on.
  std::fill(data, data + count, mine);
  group->all_reduce(data + 13, count - 29, DType::F32);
  expect(all_are(data + 13, count - 29, sum_of_ranks(size)) && all_are(data, 13, mine) &&
             all_are(data + count - 16, 16, mine),
         "all_reduce in a part of a buffer");
  std::fill(parts, parts + count * size, mine);
  group->reduce_scatter(parts, data, count, DType::F32);
  expect(all_are(data, count, sum_of_ranks(size)), "reduce_scatter from a buffer");
  std::fill(data, data + count, mine);
  group->all_gather(data, parts, count, DType::F32);
  for (int other = 0; other < size; ++other) {
    expect(all_are(parts + other * count, count, static_cast<float>(other + 1)), "all_gather of buffers");
  }
  std::vector<float> ordinary = filled(count, mine);
  group->all_gather(ordinary.data(), parts, count, DType::F32);
  for (int other = 0; other < size; ++other) {
    expect(all_are(parts + other * count, count, static_cast<float>(other + 1)), "all_gather into a buffer");
  }
  std::fill(data, data + count, mine);
  group->broadcast(data, count, DType::F32, size - 1);
  expect(all_are(data, count, static_cast<float>(size)), "broadcast in a buffer");
  // One member has its data elsewhere than the others.
  std::fill(data, data + count, mine);
  float* mixed = group->rank() == 0 ? ordinary.data() : data;
  std::fill(mixed, mixed + count, mine);
  group->all_reduce(mixed, count, DType::F32);
  expect(all_are(mixed, count, sum_of_ranks(size)), "all_reduce, one member without a buffer");
  std::vector<float> received(static_cast<size_t>(count * size));
  for (int other = 0; other < size; ++other) {
    std::fill(parts + other * count, parts + (other + 1) * count, mine * 10 + static_cast<float>(other));
  }
  group->all_to_all(parts, received.data(), count, DType::F32);
  for (int other = 0; other < size; ++other) {
    expect(all_are(received.data() + other * count, count,
                   static_cast<float>(other + 1) * 10 + static_cast<float>(group->rank())),
           "all_to_all from a buffer");
  }
  first.reset();
  auto third = group->allocate(count * 4);
  std::fill_n(static_cast<float*>(third->data()), count, mine);
  auto pending = group->start_all_reduce(third->data(), count, DType::F32);
  auto fourth = group->allocate(64);
  pending.wait();
  expect(all_are(static_cast<float*>(third->data()), count, sum_of_ranks(size)), "a buffer after another was freed");
  group.reset();
  std::fill_n(static_cast<float*>(third->data()), count, 1.0f);  // outlives its group
}

// A mesh of 2 x size/2: rows and columns at once, started in different orders.
void check_groups(World& world, const Arguments&) {
  const int rank = world.rank();
  const int columns = world.size() / 2;
  std::vector<int> row, column;
  for (int i = 0; i < columns; ++i) row.push_back(rank / columns * columns + i);
  for (int i = 0; i < 2; ++i) column.push_back(rank % columns + i * columns);
  auto row_group = world.group(row, "row");
  auto column_group = world.group(column, "column");
  auto backwards_ranks = all_ranks(world);
  std::reverse(backwards_ranks.begin(), backwards_ranks.end());
  auto backwards = world.group(backwards_ranks, "all");
  auto again = world.group(backwards_ranks, "all");
  expect(backwards->rank() == world.size() - 1 - rank, "the order of a group is that of its list");
  expect(backwards->world_ranks() == backwards_ranks && backwards->name() == "all", "what a group is");
  const int64_t count = 100000;
  const float row_sum = static_cast<float>(std::accumulate(row.begin(), row.end(), 0));
  const float column_sum = static_cast<float>(std::accumulate(column.begin(), column.end(), 0));
  for (int round = 0; round < 20; ++round) {
    std::vector<float> a = filled(count, static_cast<float>(rank)), b = a, c = a;
    Pending first, second;
    if ((rank + round) % 2 == 0) {
      first = row_group->start_all_reduce(a.data(), count, DType::F32);
      second = column_group->start_all_reduce(b.data(), count, DType::F32);
    } else {
      second = column_group->start_all_reduce(b.data(), count, DType::F32);
      first = row_group->start_all_reduce(a.data(), count, DType::F32);
    }
    again->all_reduce(c.data(), 3, DType::F32);
    second.wait();
    first.wait();
    expect(first.done() && second.done(), "done after a wait");
    expect(all_are(a.data(), count, row_sum), "all_reduce of a row");
    expect(all_are(b.data(), count, column_sum), "all_reduce of a column");
    expect(all_are(c.data(), 3, static_cast<float>(world.size() * (world.size() - 1) / 2)), "all_reduce of all");
  }
  std::vector<float> data = filled(5, static_cast<float>(rank));
  backwards->broadcast(data.data(), 5, DType::F32, 0);
  expect(all_are(data.data(), 5, static_cast<float>(world.size() - 1)), "broadcast from the first of a list");
}

// Futures and waiting calls mixed: the order is that of the calls.
void check_order(World& world, const Arguments&) {
  auto group = world.group(all_ranks(world), "all");
  const int size = world.size();
  for (int round = 0; round < 30; ++round) {
    std::vector<std::vector<float>> data;
    std::vector<Pending> pending;
    for (int i = 0; i < 8; ++i) data.push_back(filled(1 + i * 5000, static_cast<float>(world.rank() + 1 + i)));
    for (int i = 0; i < 8; ++i) {
      auto& one = data[static_cast<size_t>(i)];
      if (i == 5) {
        group->all_reduce(one.data(), static_cast<int64_t>(one.size()), DType::F32);
      } else {
        pending.push_back(group->start_all_reduce(one.data(), static_cast<int64_t>(one.size()), DType::F32));
      }
      // Depends on the call before: only in order it gives the same on all.
      if (i == 3) pending.push_back(group->start_broadcast(one.data(), 1, DType::F32, round % size));
    }
    pending.push_back(group->start_barrier());
    for (Pending& one : pending) one.wait();
    for (int i = 0; i < 8; ++i) {
      const auto& one = data[static_cast<size_t>(i)];
      expect(all_are(one.data(), static_cast<int64_t>(one.size()), sum_of_ranks(size) + static_cast<float>(size * i)),
             fmt::format("call {} of a row of calls", i));
    }
  }
  Pending nothing;
  nothing.wait();
  expect(nothing.done(), "nothing is done");
}

void check_messages(World& world, const Arguments&) {
  auto group = world.group(all_ranks(world), "all");
  const int size = world.size();
  const int rank = world.rank();
  const int next = (rank + 1) % size;
  const int before = (rank + size - 1) % size;
  for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{1001}, int64_t{3000001}}) {
    std::vector<float> out = filled(count, static_cast<float>(rank)), in = filled(count, -1);
    group->send(out.data(), count * 4, next, 7);  // all of them send first
    group->receive(in.data(), count * 4, before, 7);
    expect(all_are(in.data(), count, static_cast<float>(before)), fmt::format("a message of {}", count));
  }
  // Tags in another order than they were sent, and collectives meanwhile.
  std::vector<std::vector<float>> out, in;
  std::vector<Pending> pending;
  for (int tag = 0; tag < 6; ++tag) {
    out.push_back(filled(50000 + tag, static_cast<float>(rank * 10 + tag)));
    in.push_back(filled(50000 + tag, -1));
  }
  for (int tag = 0; tag < 6; ++tag) {
    pending.push_back(group->start_send(out[static_cast<size_t>(tag)].data(), (50000 + tag) * 4, next, tag));
  }
  std::vector<float> sum = filled(200000, 1);
  group->all_reduce(sum.data(), 200000, DType::F32);
  expect(all_are(sum.data(), 200000, static_cast<float>(size)), "all_reduce beside messages");
  for (int tag = 5; tag >= 0; --tag) {
    pending.push_back(group->start_receive(in[static_cast<size_t>(tag)].data(), (50000 + tag) * 4, before, tag));
  }
  for (Pending& one : pending) one.wait();
  for (int tag = 0; tag < 6; ++tag) {
    expect(all_are(in[static_cast<size_t>(tag)].data(), 50000 + tag, static_cast<float>(before * 10 + tag)),
           "messages by tag");
  }
  // Of one pair and tag in order.
  std::vector<int64_t> numbers(100), got(100);
  pending.clear();
  for (int i = 0; i < 100; ++i) {
    numbers[static_cast<size_t>(i)] = i;
    pending.push_back(group->start_send(&numbers[static_cast<size_t>(i)], 8, next, 1));
    pending.push_back(group->start_receive(&got[static_cast<size_t>(i)], 8, before, 1));
  }
  for (Pending& one : pending) one.wait();
  expect(got == numbers, "messages of one tag in order");
}

// Prints a hash of sums of numbers that do not add up exactly: equal for all ranks, transports and ways.
void check_bits(World& world, const Arguments&) {
  auto group = world.group(all_ranks(world), "all");
  std::string text;
  for (const DType type : {DType::F64, DType::F32, DType::BF16, DType::F16}) {
    for (const int64_t count : {int64_t{100}, int64_t{30000}, int64_t{1000003}}) {
      std::mt19937_64 random(static_cast<uint64_t>(world.rank() * 1000 + count));
      std::vector<uint16_t> halves(static_cast<size_t>(count) * size_of(type) / 2);
      for (int64_t i = 0; i < count; ++i) {  // exponents around 1, any fraction
        const double value =
            std::ldexp(1.0 + static_cast<double>(random() >> 12) * 0x1p-52, static_cast<int>(random() % 5));
        const auto single = static_cast<float>(value);
        if (type == DType::F64) std::memcpy(halves.data() + i * 4, &value, 8);
        if (type == DType::F32) std::memcpy(halves.data() + i * 2, &single, 4);
        if (type == DType::BF16) halves[static_cast<size_t>(i)] = static_cast<uint16_t>(0x3f80 + random() % 0x180);
        if (type == DType::F16) halves[static_cast<size_t>(i)] = static_cast<uint16_t>(0x3c00 + random() % 0x1400);
      }
      std::vector<uint16_t> copy = halves;
      group->all_reduce(halves.data(), count, type);
      auto buffer = group->allocate(static_cast<int64_t>(copy.size() * 2));
      std::memcpy(buffer->data(), copy.data(), copy.size() * 2);
      group->all_reduce(buffer->data(), count, type);
      expect(std::memcmp(buffer->data(), halves.data(), copy.size() * 2) == 0,
             "the same bits with and without a buffer");
      text += sha256(std::string_view(reinterpret_cast<const char*>(halves.data()), halves.size() * 2));
    }
  }
  fmt::print("bits {}\n", sha256(text));
  std::fflush(stdout);
}

// arguments: loop KIND [buffer]. Goes on until somebody is lost.
void loop_until_loss(World& world, const Arguments& arguments) {
  auto group = world.group(all_ranks(world), "dp");
  const std::string kind = arguments.at(1);
  const int size = world.size();
  const int64_t count = 200000;
  std::shared_ptr<CommBuffer> buffer;
  // A send in progress reads its memory until the job is over, also when something else fails first.
  static std::vector<float> memory, memory_out;
  memory_out = memory = filled(count * size, 1);
  float* data = memory.data();
  if (arguments.size() > 2) {
    buffer = group->allocate(count * size * 4);
    data = static_cast<float*>(buffer->data());
  }
  float* out = memory_out.data();
  fmt::print("looping\n");
  std::fflush(stdout);
  for (int step = 0;; ++step) {
    group->set_purpose(fmt::format("step {}", step));
    if (kind == "all_reduce") group->all_reduce(data, count, DType::F32, ReduceOp::Max);
    if (kind == "reduce_scatter") group->reduce_scatter(data, out, count, DType::F32);
    if (kind == "all_gather") group->all_gather(data, out, count, DType::F32);
    if (kind == "broadcast") group->broadcast(data, count, DType::F32, size - 1);
    if (kind == "all_to_all") group->all_to_all(data, out, count, DType::F32);
    if (kind == "barrier") group->barrier();
    if (kind == "future") group->start_all_reduce(data, count, DType::F32, ReduceOp::Max).wait();
    if (kind == "messages") {
      Pending sent = group->start_send(data, count * 4, (world.rank() + 1) % size, 3);
      group->receive(out, count * 4, (world.rank() + size - 1) % size, 3);
      sent.wait();
    }
    if (kind == "small") group->all_reduce(data, 10, DType::F32, ReduceOp::Max);
  }
}

// The last rank does not come to a call; the watchdog must say so.
void get_stuck(World& world, const Arguments& arguments) {
  auto group = world.group(all_ranks(world), "dp");
  std::vector<float> data = filled(100000, 1);
  group->all_reduce(data.data(), 100000, DType::F32, ReduceOp::Max);
  group->set_purpose("gradients of step 12");
  if (world.rank() == world.size() - 1) {
    std::this_thread::sleep_for(std::chrono::seconds(60));
  } else if (arguments.size() > 1 && arguments[1] == "receive") {
    group->receive(data.data(), 8, world.size() - 1, 5);
  } else {
    group->all_reduce(data.data(), 100000, DType::F32, ReduceOp::Max);
  }
}

void disagree(World& world, const Arguments&) {
  auto group = world.group(all_ranks(world), "dp");
  std::vector<float> data = filled(100, 1);
  group->all_reduce(data.data(), world.rank() == 0 ? 100 : 99, DType::F32);
}

}  // namespace assay::rank_program
