#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "device/allocator.h"
#include "device/blas.h"
#include "device/cpu.h"
#include "device/info.h"
#include "device/large_blocks.h"
#include "device/nvml.h"
#include "device/threads.h"

namespace assay {
namespace {

TEST(Threads, UseAllUsableCoresByDefault) {
  ::unsetenv("ASSAY_THREADS");
  EXPECT_EQ(choose_threads(1).threads, usable_cores());
  EXPECT_EQ(choose_threads(100000).threads, 1);
  ::setenv("ASSAY_THREADS", "3", 1);
  EXPECT_EQ(choose_threads(1).threads, 3);
  for (const char* wrong : {"0", "-1", "two", "1.5", "99999"}) {
    ::setenv("ASSAY_THREADS", wrong, 1);
    EXPECT_THROW(choose_threads(1), ConfigError) << wrong;
  }
  ::unsetenv("ASSAY_THREADS");
}

TEST(Threads, ApplyToLibtorchAndBlas) {
  const int before = at::get_num_threads();
  ::setenv("ASSAY_THREADS", "1", 1);
  configure_threads(1);
  EXPECT_EQ(at::get_num_threads(), 1);
  EXPECT_EQ(blas_info().threads, 1);
  ::unsetenv("ASSAY_THREADS");
  at::set_num_threads(before);
}

TEST(Allocator, RoundsBlocksUpALittle) {
  size_t previous = 0;
  for (size_t bytes = 1; bytes < (size_t{1} << 34); bytes += bytes / 7 + 1) {
    const size_t size = block_size(bytes);
    ASSERT_GE(size, bytes);
    ASSERT_GE(size, previous) << bytes;
    ASSERT_EQ(size % 64, 0u);
    ASSERT_LE(size, std::max<size_t>(bytes + bytes / 8 + 64, 64)) << bytes;
    ASSERT_EQ(block_size(size), size);
    previous = size;
  }
}

TEST(Allocator, ReusesAndCountsMemory) {
  install_caching_allocator();
  install_caching_allocator();
  ASSERT_TRUE(caching_allocator_installed());
  const AllocatorStats before = allocator_stats();
  void* first = nullptr;
  {
    const at::Tensor tensor = at::zeros({1000, 1000});
    first = tensor.data_ptr();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
    EXPECT_GE(allocator_stats().in_use_bytes, before.in_use_bytes + 4'000'000);
  }
  EXPECT_EQ(allocator_stats().in_use_bytes, before.in_use_bytes);
  EXPECT_GE(allocator_stats().peak_bytes, 4'000'000);
  EXPECT_EQ(at::empty({1000, 1000}).data_ptr(), first);
  const int64_t peak = allocator_stats().peak_bytes;
  count_foreign_memory(peak + 1);
  EXPECT_EQ(allocator_stats().peak_bytes, before.in_use_bytes + peak + 1);
  count_foreign_memory(-(peak + 1));
  EXPECT_EQ(allocator_stats().in_use_bytes, before.in_use_bytes);
  release_cached_memory();
  EXPECT_EQ(allocator_stats().cached_bytes, 0);
}

TEST(LargeBlocks, JoinsWhatManyLeave) {
  LargeBlocks blocks;
  constexpr size_t kMega = size_t{1} << 20;
  std::vector<char*> taken;
  for (int i = 0; i < 8; ++i) taken.push_back(static_cast<char*>(blocks.take(kMega)));
  EXPECT_EQ(blocks.cached_bytes(), 0u);
  for (const int i : {1, 3, 2, 6, 5}) blocks.give_back(taken[i], kMega);
  EXPECT_EQ(blocks.cached_bytes(), 5 * kMega);
  EXPECT_EQ(blocks.take(3 * kMega), taken[1]);  // 1, 2 and 3 are one piece
  EXPECT_EQ(blocks.take(2 * kMega), taken[5]);
  EXPECT_EQ(blocks.cached_bytes(), 0u);
}

TEST(LargeBlocks, TakesTheSmallestThatFits) {
  LargeBlocks blocks;
  constexpr size_t kMega = size_t{1} << 20;
  void* large = blocks.take(5 * kMega);
  blocks.take(64);
  void* small = blocks.take(2 * kMega);
  blocks.take(64);
  blocks.give_back(large, 5 * kMega);
  blocks.give_back(small, 2 * kMega);
  EXPECT_EQ(blocks.take(kMega), small);
  EXPECT_EQ(blocks.take(3 * kMega), large);
}

TEST(LargeBlocks, DoesNotOverlapInRandomUse) {
  LargeBlocks blocks;
  std::mt19937_64 random(7);
  struct Taken {
    char* at;
    size_t size;
    char mark;
  };
  std::vector<Taken> taken;
  size_t in_use = 0, peak = 0;
  char* lowest = nullptr;
  char* highest = nullptr;
  for (int i = 0; i < 20000; ++i) {
    if (taken.size() < 40 && random() % 2) {
      const size_t size = (random() % 5000 + 1) * LargeBlocks::kGrain;
      char* at = static_cast<char*>(blocks.take(size));
      ASSERT_EQ(reinterpret_cast<uintptr_t>(at) % LargeBlocks::kGrain, 0u);
      taken.push_back({at, size, static_cast<char>(i)});
      at[0] = at[size - 1] = static_cast<char>(i);
      lowest = lowest ? std::min(lowest, at) : at;
      highest = std::max(highest, at + size);
      peak = std::max(peak, in_use += size);
    } else if (!taken.empty()) {
      std::swap(taken[random() % taken.size()], taken.back());
      const Taken last = taken.back();
      taken.pop_back();
      ASSERT_EQ(last.at[0], last.mark);
      ASSERT_EQ(last.at[last.size - 1], last.mark);
      blocks.give_back(last.at, last.size);
      in_use -= last.size;
    }
    if (i % 5000 == 0) blocks.release();
  }
  EXPECT_LT(static_cast<size_t>(highest - lowest), 2 * peak);
  for (const Taken& left : taken) blocks.give_back(left.at, left.size);
  blocks.release();
  EXPECT_EQ(blocks.cached_bytes(), 0u);
}

TEST(Allocator, ServesSeveralThreads) {
  install_caching_allocator();
  const int64_t before = allocator_stats().in_use_bytes;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 1; i < 500; ++i) {
        at::Tensor tensor = at::empty({i % 17 + 1, 64});
        tensor.data_ptr<float>()[0] = static_cast<float>(t);
        if (tensor.data_ptr<float>()[0] != static_cast<float>(t)) std::abort();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocator_stats().in_use_bytes, before);
}

TEST(Allocator, ThrowsOutOfMemoryForTooMuch) {
  install_caching_allocator();
  EXPECT_THROW(at::empty({int64_t{1} << 50}), OutOfMemoryError);
}

TEST(Cpu, IsDescribed) {
  const CpuInfo info = cpu_info();
  EXPECT_FALSE(info.model.empty());
  EXPECT_GE(info.logical_cores, info.usable_cores);
  EXPECT_GT(info.memory_bytes, 100'000'000);
  EXPECT_GT(peak_resident_bytes().value(), 10'000'000);
}

TEST(Cpu, MeasuresRatesOfTheRightOrder) {
  const double one = measure_fma_gflops(1, 0.05);
  EXPECT_GT(one, 1);
  EXPECT_LT(one, 1000);
  EXPECT_GT(measure_sgemm_gflops(0.05), 0.5);
}

TEST(Blas, IsOpenBlasWithOpenMp) {
  const BlasInfo info = blas_info();
  EXPECT_TRUE(info.openblas);
  EXPECT_NE(info.library.find("openblas"), std::string::npos);
  EXPECT_EQ(info.parallel, 2);
  EXPECT_EQ(info.problem, "");
}

TEST(Nvml, AnswersCleanlyForAbsentOrForeignLibraries) {
  const NvmlReport absent = query_nvml("libno-such-library.so.1");
  EXPECT_EQ(absent.state, NvmlReport::State::LibraryAbsent);
  EXPECT_TRUE(absent.devices.empty());
  const NvmlReport foreign = query_nvml("libz.so.1");
  EXPECT_EQ(foreign.state, NvmlReport::State::NoDriver);
  EXPECT_NE(foreign.detail.find("lacks"), std::string::npos);
}

TEST(Info, HasEveryGroupAndNullsForWhatWasNotMeasured) {
  const Json info = machine_info(false);
  for (const char* group :
       {"worker", "compiler", "libtorch", "onednn", "gloo", "blas", "cpu", "memory", "malloc", "threads", "devices"}) {
    EXPECT_TRUE(info.contains(group)) << group;
  }
  EXPECT_TRUE(info["blas"]["sgemm_gflops"].is_null());
  EXPECT_TRUE(info["cpu"]["fma_gflops"].is_null());
  EXPECT_GT(machine_info(true)["blas"]["sgemm_gflops"].get<double>(), 0);
}

// A second team of OpenMP threads would slow down the first one.
TEST(Threads, StartNoTeamForAThreadBesideTraining) {
  at::set_num_threads(2);
  torch::ones({1 << 20}).exp();  // the team of this thread
  const auto num_threads = [] {
    return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
  };
  const auto before = num_threads();
  std::ptrdiff_t inside = 0;
  std::thread([&] {
    compute_on_this_thread_alone();
    torch::ones({1 << 20}).exp();
    inside = num_threads();
  }).join();
  EXPECT_EQ(inside, before + 1);  // the thread itself
  EXPECT_EQ(at::get_num_threads(), 2);
}

}  // namespace
}  // namespace assay
