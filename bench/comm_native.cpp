// One process of bench/comm: all_reduce of float32 by each way, and the copy limit, in alternating rounds. Rank 0
// prints one JSON line: way -> bytes -> seconds, the median of all runs.
#include <fmt/format.h>
#include <gloo/allreduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>

#include "base/json.h"
#include "base/text.h"
#include "comm/segment.h"
#include "comm/world.h"

namespace {

using namespace assay;
using namespace assay::comm;

int from_environment(const char* name) { return static_cast<int>(parse_int(std::getenv(name)).value()); }

std::shared_ptr<gloo::Context> gloo_context(const std::string& folder, int rank, int size) {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->connectFullMesh(store, device);
  return context;
}

// What limits an all_reduce: every process reads its slice of each member's data, which that member has just written,
// and writes it to memory of each member: as many bytes in as its data has, and as many out. No sums, nobody to wait
// for.
void copy_slices(std::byte* all, int rank, int size, int64_t bytes) {
  const int64_t slice = bytes / size;
  for (int i = 0; i < size; ++i) {
    const std::byte* from = all + i * bytes + rank * slice;
    std::memcpy(all + (size + i) * bytes + rank * slice, from, static_cast<size_t>(slice));
  }
}

// The same in place, as an all_reduce in a buffer works: every member's slice moves to the next member, by blocks that
// stay in the first-level cache.
void rotate_slices(std::byte* all, int rank, int size, int64_t bytes) {
  constexpr int64_t kBlock = 4096;
  std::byte first[kBlock];
  const int64_t slice = bytes / size;
  for (int64_t at = 0; at < slice; at += kBlock) {
    const auto part = static_cast<size_t>(std::min(kBlock, slice - at));
    std::byte* block = all + rank * slice + at;
    std::memcpy(first, block, part);
    for (int i = 0; i + 1 < size; ++i) std::memcpy(block + i * bytes, block + (i + 1) * bytes, part);
    std::memcpy(block + (size - 1) * bytes, first, part);
  }
}

// Memory that all see: `bytes` for each member to copy from, and as much to copy to.
std::unique_ptr<Segment> memory_of_all(const std::string& name, int rank, int size, int64_t bytes) {
  const auto total = static_cast<size_t>(2 * bytes * size);
  if (rank != 0) return std::make_unique<Segment>(take_segment(name, [] {}), total);
  FileDescriptor file = Segment::create(total);
  give_segment(name, file.get(), size - 1, [] {});
  return std::make_unique<Segment>(std::move(file), total);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Setup {
  Communicator& group;
  Communicator& over_gloo;
  std::shared_ptr<gloo::Context> context;
  int64_t bytes = 0;
  int rounds = 0;
  std::string memory_name;
};

void plain_sum(void* to, const void* from, const void* more, size_t count) {
  const auto* x = static_cast<const float*>(from);
  const auto* y = static_cast<const float*>(more);
  auto* z = static_cast<float*>(to);
  for (size_t i = 0; i < count; ++i) z[i] = x[i] + y[i];
}

struct Way {
  std::string name;
  float* data;  // written anew by its owner before each run, as gradients are
  std::function<void()> run;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// The runs of one round of one way: seconds from the first member's beginning to the last one's end. With more members
// than cores some begin when others have ended.
void time_way(const Way& way, Communicator& group, int64_t bytes, std::vector<double>& seconds) {
  const bool slow = way.name == "gloo" || way.name == "over_gloo";
  const auto repeats = static_cast<int>(std::clamp<int64_t>((slow ? 16 : 128) * (int64_t{1} << 20) / bytes, 2, 200));
  for (int i = -1; i < repeats; ++i) {  // the first one warms up
    std::fill_n(way.data, bytes / 4, 1.0f);
    group.barrier();
    double times[] = {-now(), 0};
    way.run();
    times[1] = now();
    group.all_reduce(times, 2, DType::F64, ReduceOp::Max);
    if (i >= 0) seconds.push_back(times[1] + times[0]);
  }
}

std::map<std::string, double> measure(const Setup& setup) {
  const int rank = setup.group.rank();
  const int size = setup.group.size();
  const int64_t count = setup.bytes / 4;
  const auto buffer = setup.group.allocate(setup.bytes);
  const auto all = memory_of_all(setup.memory_name, rank, size, setup.bytes);
  std::vector<float> ordinary(static_cast<size_t>(count));
  auto* shared = static_cast<float*>(buffer->data());
  const std::vector<Way> ways = {
      {"copy", reinterpret_cast<float*>(all->data() + rank * setup.bytes),
       [&] { copy_slices(all->data(), rank, size, setup.bytes); }},
      {"rotate", reinterpret_cast<float*>(all->data() + rank * setup.bytes),
       [&] { rotate_slices(all->data(), rank, size, setup.bytes); }},
      {"buffer", shared, [&] { setup.group.all_reduce(shared, count, DType::F32); }},
      {"ordinary", ordinary.data(), [&] { setup.group.all_reduce(ordinary.data(), count, DType::F32); }},
      {"over_gloo", ordinary.data(), [&] { setup.over_gloo.all_reduce(ordinary.data(), count, DType::F32); }},
      {"gloo", ordinary.data(),
       [&] {
         gloo::AllreduceOptions call(setup.context);
         call.setOutput(ordinary.data(), static_cast<size_t>(count));
         call.setReduceFunction(plain_sum);
         gloo::allreduce(call);
       }},
  };
  std::map<std::string, std::vector<double>> runs;
  for (int round = 0; round < setup.rounds; ++round) {
    for (const Way& way : ways) time_way(way, setup.group, setup.bytes, runs[way.name]);
  }
  std::map<std::string, double> medians;
  for (const auto& [name, values] : runs) medians[name] = median(values);
  return medians;
}

}  // namespace

// arguments: FOLDER ROUNDS BYTES...; RANK, WORLD_SIZE, MASTER_PORT (and the port after it) as in training
int main(int argc, char** argv) {
  const std::string folder = argv[1];
  const int rounds = static_cast<int>(*parse_int(argv[2]));
  const int rank = from_environment("RANK");
  const int size = from_environment("WORLD_SIZE");
  WorldOptions options = {.rank = rank, .world_size = size, .master_port = from_environment("MASTER_PORT")};
  auto world = World::join(options);
  options.transport = TransportKind::Gloo;
  options.master_port += 1;
  auto network = World::join(options);
  std::vector<int> ranks;
  for (int i = 0; i < size; ++i) ranks.push_back(i);
  auto group = world->group(ranks, "all");
  auto over_gloo = network->group(ranks, "all");
  const auto context = gloo_context(folder, rank, size);

  Json result;
  for (int i = 3; i < argc; ++i) {
    const int64_t bytes = *parse_int(argv[i]);
    for (const auto& [name, seconds] : measure({.group = *group,
                                       .over_gloo = *over_gloo,
                                       .context = context,
                                       .bytes = bytes,
                                       .rounds = rounds,
                                       .memory_name = fmt::format("{}-{}", options.master_port, bytes)})) {
      result[name][std::to_string(bytes)] = seconds;
    }
  }
  if (rank == 0) std::cout << result.dump() << std::endl;
  network->leave();
  world->leave();
  return 0;
}
