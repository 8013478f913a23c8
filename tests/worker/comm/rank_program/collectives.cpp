// Every collective for every element type, of sizes around those at which the ways of moving bytes change, against
// values computed plainly.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "scenario.h"

namespace assay::rank_program {

using namespace comm;

namespace {

struct TypeCase {
  DType type;
  const char* name;
};
constexpr TypeCase kTypes[] = {{DType::F64, "f64"}, {DType::F32, "f32"}, {DType::BF16, "bf16"}, {DType::F16, "f16"},
                               {DType::I64, "i64"}, {DType::I32, "i32"}, {DType::U8, "u8"}};

// Halves by the formula of their definition, not by the code under test: for whole numbers that fit.
uint16_t half_of(double value, int exponent_bits, int fraction_bits) {
  if (value == 0) return 0;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = std::ilogb(value);
  const double fraction = std::fabs(value) / std::ldexp(1.0, exponent) - 1;
  const auto bits = static_cast<uint32_t>(std::ldexp(fraction, fraction_bits));
  const uint32_t sign = value < 0 ? 1u << (exponent_bits + fraction_bits) : 0;
  return static_cast<uint16_t>(sign | (static_cast<uint32_t>(exponent + bias) << fraction_bits) | bits);
}

void put(std::vector<std::byte>& bytes, int64_t at, DType type, double value) {
  const auto store = [&](auto number) {
    std::memcpy(bytes.data() + at * static_cast<int64_t>(sizeof number), &number, sizeof number);
  };
  switch (type) {
    case DType::F64: return store(value);
    case DType::F32: return store(static_cast<float>(value));
    case DType::BF16: return store(half_of(value, 8, 7));
    case DType::F16: return store(half_of(value, 5, 10));
    case DType::I64: return store(static_cast<int64_t>(value));
    case DType::I32: return store(static_cast<int32_t>(value));
    case DType::U8: return store(static_cast<uint8_t>(value));
  }
}

// A small whole number, different for each rank and place: sums are exact in every type.
double number_at(int rank, int64_t place) { return static_cast<double>((place * 7 + rank * 3 + place / 1000) % 11); }

std::vector<std::byte> numbers(int rank, int64_t from, int64_t count, DType type) {
  std::vector<std::byte> bytes(static_cast<size_t>(count) * size_of(type));
  for (int64_t i = 0; i < count; ++i) put(bytes, i, type, number_at(rank, from + i));
  return bytes;
}

double reduced_at(int size, int64_t place, ReduceOp op) {
  double result = number_at(0, place);
  for (int rank = 1; rank < size; ++rank) {
    const double next = number_at(rank, place);
    result = op == ReduceOp::Sum   ? result + next
             : op == ReduceOp::Min ? std::min(result, next)
                                   : std::max(result, next);
  }
  return result;
}

std::vector<std::byte> reduced(int size, int64_t from, int64_t count, DType type, ReduceOp op) {
  std::vector<std::byte> bytes(static_cast<size_t>(count) * size_of(type));
  for (int64_t i = 0; i < count; ++i) put(bytes, i, type, reduced_at(size, from + i, op));
  return bytes;
}

void append(std::vector<std::byte>& to, const std::vector<std::byte>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void compare(const std::string& what, const std::vector<std::byte>& is, const std::vector<std::byte>& should) {
  if (is != should) {
    size_t at = 0;
    while (at < should.size() && is[at] == should[at]) ++at;
    complain(fmt::format("{}: differs at byte {} of {}", what, at, should.size()));
  }
}

// The collectives of a group: those that wait, or those with a future.
struct Calls {
  Communicator& group;
  bool with_futures;

  int size() const { return group.size(); }
  int rank() const { return group.rank(); }
  std::string name() const { return with_futures ? " with a future" : ""; }
  void all_reduce(void* data, int64_t count, DType type, ReduceOp op) const {
    with_futures ? group.start_all_reduce(data, count, type, op).wait() : group.all_reduce(data, count, type, op);
  }
  void reduce_scatter(const void* input, void* output, int64_t count, DType type, ReduceOp op) const {
    with_futures ? group.start_reduce_scatter(input, output, count, type, op).wait()
                 : group.reduce_scatter(input, output, count, type, op);
  }
  void all_gather(const void* input, void* output, int64_t count, DType type) const {
    with_futures ? group.start_all_gather(input, output, count, type).wait()
                 : group.all_gather(input, output, count, type);
  }
  void broadcast(void* data, int64_t count, DType type, int root) const {
    with_futures ? group.start_broadcast(data, count, type, root).wait() : group.broadcast(data, count, type, root);
  }
  void all_to_all(const void* input, void* output, int64_t count, DType type) const {
    with_futures ? group.start_all_to_all(input, output, count, type).wait()
                 : group.all_to_all(input, output, count, type);
  }
};

void check_one(const Calls& group, int64_t count, const TypeCase& type, ReduceOp op) {
  const int size = group.size();
  const int rank = group.rank();
  const std::string what =
      fmt::format("{} x {} op {} rank {} of {}{}", count, type.name, static_cast<int>(op), rank, size, group.name());
  std::vector<std::byte> data = numbers(rank, 0, count, type.type);
  group.all_reduce(data.data(), count, type.type, op);
  compare("all_reduce " + what, data, reduced(size, 0, count, type.type, op));

  std::vector<std::byte> parts = numbers(rank, 0, count * size, type.type);
  std::vector<std::byte> out(static_cast<size_t>(count) * size_of(type.type));
  group.reduce_scatter(parts.data(), out.data(), count, type.type, op);
  compare("reduce_scatter " + what, out, reduced(size, rank * count, count, type.type, op));
  std::byte* own = parts.data() + static_cast<size_t>(rank) * out.size();
  group.reduce_scatter(parts.data(), own, count, type.type, op);
  compare("reduce_scatter in place " + what, {own, own + out.size()},
          reduced(size, rank * count, count, type.type, op));
}

void check_moves(const Calls& group, int64_t count, const TypeCase& type) {
  const int size = group.size();
  const int rank = group.rank();
  const std::string what = fmt::format("{} x {} rank {} of {}{}", count, type.name, rank, size, group.name());
  const std::vector<std::byte> mine = numbers(rank, 0, count, type.type);
  std::vector<std::byte> all(mine.size() * static_cast<size_t>(size));
  std::vector<std::byte> should;
  for (int other = 0; other < size; ++other) append(should, numbers(other, 0, count, type.type));
  group.all_gather(mine.data(), all.data(), count, type.type);
  compare("all_gather " + what, all, should);
  std::vector<std::byte> in_place(all.size());
  std::byte* own = in_place.data() + static_cast<size_t>(rank) * mine.size();
  if (!mine.empty()) std::memcpy(own, mine.data(), mine.size());
  group.all_gather(own, in_place.data(), count, type.type);
  compare("all_gather in place " + what, in_place, should);

  for (int root = 0; root < size; root += size - 1) {
    std::vector<std::byte> data = mine;
    group.broadcast(data.data(), count, type.type, root);
    compare("broadcast " + what, data, numbers(root, 0, count, type.type));
  }

  std::vector<std::byte> parts = numbers(rank, 0, count * size, type.type);
  std::vector<std::byte> got(parts.size());
  should.clear();
  for (int other = 0; other < size; ++other) append(should, numbers(other, rank * count, count, type.type));
  group.all_to_all(parts.data(), got.data(), count, type.type);
  compare("all_to_all " + what, got, should);
}

}  // namespace

// arguments: collectives [SIZE...], elements; without sizes a list of its own
void check_collectives(World& world, const Arguments& arguments) {
  auto group = world.group(all_ranks(world), "all");
  std::vector<int64_t> counts = {0, 1, 5, 63, 1000, 4097, 70001};
  if (arguments.size() > 1) {
    counts.clear();
    for (size_t i = 1; i < arguments.size(); ++i) counts.push_back(std::stoll(arguments[i]));
  }
  for (const TypeCase& type : kTypes) {
    for (const int64_t count : counts) {
      // Of the largest only what differs in the way it goes: its size, and half the width.
      const bool large = count > 100000;
      if (large && type.type != DType::F32 && type.type != DType::BF16) continue;
      for (const bool with_futures : {false, true}) {
        const Calls calls{*group, with_futures};
        for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Min, ReduceOp::Max}) {
          if (!large || op == ReduceOp::Sum) check_one(calls, count, type, op);
        }
        check_moves(calls, count, type);
      }
    }
  }
  group->start_barrier().wait();
  group->barrier();
  if (group->bytes_moved() <= 0 || group->seconds_waited() <= 0) complain("nothing was counted");
}

}  // namespace assay::rank_program
