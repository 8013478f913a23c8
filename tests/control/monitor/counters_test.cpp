#include "monitor/counters.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "base/files.h"

using namespace assay;

TEST(Counters, ExistOnThisHost) {
  const auto cpu = read_cpu("/proc");
  ASSERT_TRUE(cpu.has_value());
  EXPECT_GE(cpu->cores, 1);
  EXPECT_GT(cpu->total(), 0);
  const auto memory = read_memory("/proc");
  EXPECT_GT(memory.at("MemTotal"), memory.at("MemAvailable"));
  EXPECT_TRUE(read_disks("/proc", "/sys").has_value());
  EXPECT_TRUE(read_network("/proc").has_value());
}

TEST(Counters, SurviveGarbage) {
  const TempFolder folder;
  make_folder(folder.path() / "net");
  make_folder(folder.path() / "pressure");
  std::mt19937 random(3);
  for (int i = 0; i < 100; ++i) {
    std::string text;
    for (int n = 0; n < 120; ++n) text += "cpu 0123:some total=-\n.e\xff"[random() % 25];
    for (const char* name : {"stat", "meminfo", "vmstat", "diskstats", "loadavg", "net/dev", "pressure/io"}) {
      std::ofstream(folder.path() / name, std::ios::binary | std::ios::trunc) << text;
    }
    read_cpu(folder.path());
    read_memory(folder.path());
    read_swapped_bytes(folder.path());
    read_disks(folder.path(), folder.path());
    read_network(folder.path());
    read_pressure(folder.path(), "io");
    read_load(folder.path());
  }
}
