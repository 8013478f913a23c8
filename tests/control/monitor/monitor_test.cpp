#include "monitor/monitor.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <thread>

#include "base/error.h"
#include "base/journal.h"
#include "base/process.h"
#include "base/time.h"
#include "monitor/disturbance.h"

using namespace assay;

namespace {

void sleep_seconds(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// Waits until what a monitor wrote is enough, however busy the machine is.
bool has_lines(const fs::path& file, const std::function<bool(const std::vector<Json>&)>& enough) {
  const Stopwatch watch;
  while (watch.seconds() < 60) {
    if (fs::exists(file) && enough(read_journal(file).lines)) return true;
    sleep_seconds(0.02);
  }
  return false;
}

}  // namespace

TEST(Monitor, WritesALineASampleUntilItIsDestroyed) {
  const TempFolder folder;
  const fs::path file = folder.path() / "monitor.node0.jsonl";
  const int64_t begin = now_us();
  {
    const Monitor monitor(file, {.interval_s = 0.1});
    EXPECT_TRUE(has_lines(file, [](const auto& lines) { return lines.size() >= 3; }));
  }
  const size_t count = read_journal(file).lines.size();
  const double elapsed = static_cast<double>(now_us() - begin) * 1e-6;
  EXPECT_LE(static_cast<double>(count), elapsed / 0.1 + 1);
  int64_t last = begin;
  for (const Json& line : read_journal(file).lines) {
    const auto sample = sample_of(line);
    ASSERT_TRUE(sample.has_value()) << line;
    EXPECT_GT(sample->time_us, last);
    EXPECT_GT(sample->interval_s, 0.05);
    EXPECT_LE(sample->cpu_busy.value(), 1);
    last = sample->time_us;
  }
  sleep_seconds(0.25);
  EXPECT_EQ(read_journal(file).lines.size(), count) << "nothing more comes";
}

TEST(Monitor, SamplesAShortJob) {
  const TempFolder folder;
  const fs::path file = folder.path() / "m.jsonl";
  const Stopwatch watch;
  {
    const Monitor monitor(file, {.interval_s = 60});
    sleep_seconds(0.2);
  }
  EXPECT_LT(watch.seconds(), 10) << "it does not wait for its interval";
  EXPECT_EQ(read_journal(file).lines.size(), 1u);
}

TEST(Monitor, GoesOnBehindATornLineOfAnEarlierOne) {
  const TempFolder folder;
  const fs::path file = folder.path() / "m.jsonl";
  std::ofstream(file) << "{\"time_us\":1,\"interval_s\":1}\n{\"time_us\":2,\"inter";
  {
    const Monitor monitor(file, {.interval_s = 60});
    sleep_seconds(0.2);
  }
  EXPECT_EQ(read_journal(file).lines.size(), 2u);
}

TEST(Monitor, ReadsDevicesFromTheVendorsCommand) {
  const TempFolder folder;
  const fs::path file = folder.path() / "m.jsonl";
  {
    const Monitor monitor(file, {.interval_s = 0.2, .device_command = {"/bin/echo", R"({"index":0,"power_w":61.5})"}});
    EXPECT_TRUE(has_lines(file, [](const auto& lines) {
      return std::any_of(lines.begin(), lines.end(), [](const Json& line) {
        return line["devices"] == Json::parse(R"([{"index":0,"power_w":61.5}])");
      });
    }));
  }
}

TEST(Monitor, KeepsItsPaceWhenACommandHangs) {
  const TempFolder folder;
  const fs::path file = folder.path() / "m.jsonl";
  const Stopwatch watch;
  {
    const Monitor monitor(file, {.interval_s = 0.1, .device_command = {"/bin/sleep", "600"}});
    EXPECT_TRUE(has_lines(file, [](const auto& lines) { return lines.size() >= 2; }));
  }
  EXPECT_LT(watch.seconds(), 200);
  const auto lines = read_journal(file).lines;
  ASSERT_GE(lines.size(), 2u);
  EXPECT_TRUE(lines.back()["devices"].is_null());
}

TEST(Monitor, TakesUnderAHundredthOfACore) {
  const TempFolder folder;
  const auto used = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
  };
  const double before = used();
  size_t count = 0;
  {
    const Monitor monitor(folder.path() / "m.jsonl", {.interval_s = 0.05});
    sleep_seconds(1);
  }
  count = read_journal(folder.path() / "m.jsonl").lines.size();
  ASSERT_GT(count, 2u);
  // At one sample a second, 10 ms each is a hundredth. Sanitizers and a -O0 build of this file leave room.
  EXPECT_LT((used() - before) / static_cast<double>(count), 0.010);
}

TEST(Monitor, RefusesWhatItCannotDo) {
  const TempFolder folder;
  EXPECT_THROW(Monitor(folder.path() / "no/such/folder/m.jsonl"), InfrastructureError);
  EXPECT_THROW(Monitor(folder.path() / "m.jsonl", {.interval_s = 0}), UsageError);
}

// The whole way: busy processes that are not ours make a measurement suspect.
TEST(Monitor, MarksForeignLoadAsSuspect) {
  const TempFolder folder;
  const fs::path file = folder.path() / "m.jsonl";
  const int64_t begin = now_us();
  {
    std::vector<Process> others;
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
      others.push_back(Process::start({.argv = {"/bin/sh", "-c", "while :; do :; done"}}));
    }
    const Monitor monitor(file, {.interval_s = 0.1, .sampler = {.tree_mark = "nobody carries this"}});
    sleep_seconds(1);
  }
  const Disturbance found = find_disturbance({{"node1", file}}, begin, now_us());
  ASSERT_FALSE(found.suspect.empty());
  EXPECT_EQ(found.suspect[0].find("node1: other processes used"), 0u) << found.suspect[0];
}
