#include "monitor/sample.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "base/files.h"
#include "base/process.h"
#include "base/time.h"
#include "monitor/counters.h"
#include "monitor/processes.h"

using namespace assay;

namespace {

// A /proc and /sys of a host that does not exist.
class MadeUpHost {
 public:
  MadeUpHost() {
    for (const char* name : {"proc/net", "proc/pressure", "sys/block/sda", "sys/block/loop0"}) make_folder(path(name));
  }
  fs::path path(const std::string& name) const { return folder_.path() / name; }
  void put(const std::string& name, const std::string& text) const {
    make_folder(path(name).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
  }
  SamplerOptions options(const std::string& mark = "job") const {
    return {.tree_mark = mark, .proc = path("proc"), .sys = path("sys")};
  }
  // user, nice, system, idle, iowait, irq, softirq, steal
  void put_cpu(const std::string& ticks) const {
    put("proc/stat", "cpu  " + ticks + " 0 0\ncpu0 0\ncpu1 0\nctxt 1\nprocs_running 3\nprocs_blocked 0\n");
  }
  void put_process(int pid, const std::string& environment, int user_ticks, int child_ticks) const {
    const std::string folder = "proc/" + std::to_string(pid);
    put(folder + "/environ", environment);
    put(folder + "/stat", std::to_string(pid) + " (a (b) c) R 1 1 1 0 -1 0 0 0 0 0 " + std::to_string(user_ticks) +
                              " 0 " + std::to_string(child_ticks) + " 0 20 0 1 0 5\n");
  }

 private:
  TempFolder folder_;
};

std::string environment(const std::string& mark) {
  return std::string("A=b") + '\0' + "ASSAY_TREE=" + mark + '\0' + "Z=" + '\0';
}

}  // namespace

TEST(Sampler, SharesAreThoseOfTheInterval) {
  MadeUpHost host;
  host.put_cpu("1000 0 1000 5000 100 10 10 50");
  Sampler sampler(host.options());
  host.put_cpu(
      "1050 10 1040 5060 120 12 13 65");  // of 200 ticks: 100 busy, 60 idle, 20 waiting, 5 interrupts, 15 stolen
  const Sample sample = sampler.take();
  EXPECT_EQ(sample.cores, 2);
  EXPECT_DOUBLE_EQ(sample.runnable.value(), 3);
  EXPECT_DOUBLE_EQ(sample.cpu_busy.value(), 0.525);
  EXPECT_DOUBLE_EQ(sample.cpu_iowait.value(), 0.1);
  EXPECT_DOUBLE_EQ(sample.cpu_steal.value(), 0.075);
  EXPECT_DOUBLE_EQ(sample.cpu_interrupts.value(), 0.025);
  EXPECT_DOUBLE_EQ(sample.cpu_foreign.value(), 0.5);
}

TEST(Sampler, SubtractsOurTimeFromBusyTime) {
  MadeUpHost host;
  host.put_cpu("0 0 0 0 0 0 0 0");
  host.put_process(900001, environment("job/0"), 10, 0);
  host.put_process(900002, environment("job2"), 10, 0);  // begins like ours, and is another
  host.put_process(900003, std::string("A=ASSAY_TREE=job") + '\0', 10, 0);
  Sampler sampler(host.options());
  host.put_cpu("160 0 0 40 0 0 0 0");
  host.put_process(900001, environment("job/0"), 80, 20);  // 70 itself and 20 in children that ended
  host.put_process(900002, environment("job2"), 40, 0);
  host.put_process(900003, std::string("A=ASSAY_TREE=job") + '\0', 50, 0);
  const Sample sample = sampler.take();
  EXPECT_DOUBLE_EQ(sample.cpu_own.value(), 0.45);
  EXPECT_DOUBLE_EQ(sample.cpu_other_runs.value(), 0.15);
  EXPECT_DOUBLE_EQ(sample.cpu_foreign.value(), 0.35);
}

TEST(Sampler, GivesNullForUnknownValues) {
  MadeUpHost host;
  Sampler sampler(host.options());
  const Sample sample = sampler.take();
  const Json json = to_json(sample);
  for (const SampleField& field : sample_fields()) {
    ASSERT_TRUE(json.contains(field.name));
    EXPECT_TRUE(json[field.name].is_null()) << field.name;
  }
  EXPECT_TRUE(json["devices"].is_null());
}

TEST(Sampler, ComputesRatesOfDisksNetworkSwapAndPressure) {
  MadeUpHost host;
  const auto put = [&](int factor) {
    const auto n = [&](int value) { return std::to_string(value * factor); };
    host.put("proc/diskstats", "8 0 sda 1 1 " + n(1000) + " 1 1 1 " + n(2000) + " 1 0 0 0\n8 1 sda1 1 1 " + n(9000) +
                                   " 1 1 1 9 1 0 0 0\n7 0 loop0 1 1 " + n(7000) + " 1 1 1 9 1 0 0 0\ngarbage\n");
    host.put("proc/net/dev", "Inter-| x\n face | y\n    lo: " + n(5000) + " 0 0 0 0 0 0 0 " + n(5000) + " 0\n  eth0:" +
                                 n(300) + " 0 0 0 0 0 0 0 " + n(600) + " 0\n  br0: " + n(300) + " 0 0 0 0 0 0 0 1 0\n");
    host.put("proc/vmstat", "nr 1\npswpin " + n(10) + "\npswpout " + n(5) + "\n");
    for (const char* what : {"cpu", "memory", "io"}) {
      host.put(std::string("proc/pressure/") + what,
               "some avg10=0 total=" + n(1000) + "\nfull avg10=0 total=" + n(500));
    }
    host.put("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n");
    host.put("proc/loadavg", "1.25 1 1 2/3 4\n");
  };
  put(1);
  Sampler sampler(host.options());
  put(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const Sample s = sampler.take();
  const auto change = [&](const Sample::Figure& figure) { return figure.value() * s.interval_s; };
  EXPECT_NEAR(change(s.disk_read_bytes_per_s), 512000, 1);
  EXPECT_NEAR(change(s.disk_write_bytes_per_s), 1024000, 1);
  EXPECT_NEAR(change(s.net_rx_bytes_per_s), 300, 1);
  EXPECT_NEAR(change(s.net_tx_bytes_per_s), 600, 1);
  EXPECT_NEAR(change(s.swap_bytes_per_s), 15.0 * ::sysconf(_SC_PAGESIZE), 1);
  EXPECT_NEAR(change(s.pressure_cpu_some), 0.001, 1e-9);
  EXPECT_NEAR(change(s.pressure_io_full), 0.0005, 1e-9);
  EXPECT_DOUBLE_EQ(s.memory_used_bytes.value(), 600 * 1024);
  EXPECT_DOUBLE_EQ(s.swap_used_bytes.value(), 30 * 1024);
  EXPECT_DOUBLE_EQ(s.load_1.value(), 1.25);
  EXPECT_FALSE(s.power_w.has_value()) << "no counter of energy";
}

TEST(Sampler, AddsPowerOfPackagesAndMemory) {
  MadeUpHost host;
  const auto zone = [&](const std::string& name, const std::string& kind, double joules) {
    const std::string folder = "sys/class/powercap/" + name;
    host.put(folder + "/name", kind + "\n");
    host.put(folder + "/energy_uj", std::to_string(static_cast<int64_t>(joules * 1e6)));
    host.put(folder + "/max_energy_range_uj", "1000000000");
  };
  zone("intel-rapl:0", "package-0", 999);
  zone("intel-rapl:0:0", "core", 5);
  zone("intel-rapl:0:1", "dram", 100);
  zone("intel-rapl:1", "psys", 5);
  Sampler sampler(host.options());
  zone("intel-rapl:0", "package-0", 9);  // turned over at 1000
  zone("intel-rapl:0:1", "dram", 105);
  zone("intel-rapl:1", "psys", 500);
  const Sample sample = sampler.take();
  EXPECT_NEAR(sample.power_w.value() * sample.interval_s, 15, 0.1);
}

TEST(Sampler, ReadsBackAJsonLineAndRejectsGarbage) {
  Sample sample;
  sample.time_us = 1794771785339754;
  sample.interval_s = 1.25;
  sample.cores = 2;
  sample.cpu_busy = 0.5;
  sample.memory_used_bytes = 4417000000;
  const auto back = sample_of(to_json(sample));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->time_us, sample.time_us);
  EXPECT_EQ(back->cpu_busy, 0.5);
  EXPECT_EQ(back->memory_used_bytes, 4417000000);
  EXPECT_FALSE(back->cpu_steal.has_value());
  for (const char* text : {"null", "[]", "{}", R"({"time_us":"x","interval_s":1})", R"({"time_us":1,"interval_s":-1})",
                           R"({"time_us":1e300,"interval_s":1})", R"({"time_us":1,"interval_s":1e300})"}) {
    EXPECT_FALSE(sample_of(Json::parse(text)).has_value()) << text;
  }
  const auto odd = sample_of(Json::parse(R"({"time_us":1,"interval_s":1,"cpu_busy":"a","cpu_steal":-5,"devices":7})"));
  ASSERT_TRUE(odd.has_value());
  EXPECT_FALSE(odd->cpu_busy.has_value());
  EXPECT_FALSE(odd->cpu_steal.has_value());
  EXPECT_TRUE(odd->devices.is_null());
}

TEST(Sampler, SeesARealBusyProcessAsForeignAndAMarkedOneAsOurs) {
  const std::string mark = "sample-test-" + std::to_string(now_us());
  const std::vector<std::string> spin = {"/bin/sh", "-c", "while :; do :; done"};
  Sampler sampler({.tree_mark = mark});
  Process ours = Process::start({.argv = spin, .tree_mark = mark + "/0"});
  Process theirs = Process::start({.argv = spin, .tree_mark = mark + "x"});
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  const Sample first = sampler.take();
  ours.stop(0);
  theirs.stop(0);
  const double cores = first.cores;
  ASSERT_GE(cores, 1);
  // Other programs may take most of a busy machine; each of ours gets at least a little, and at most a core.
  EXPECT_GT(first.cpu_own.value(), 0.02 / cores);
  EXPECT_GT(first.cpu_foreign.value(), 0.02 / cores);
  EXPECT_GT(first.cpu_other_runs.value(), 0.02 / cores);
  EXPECT_LT(first.cpu_own.value(), 1.3 / cores) << "the foreign one is not among them";
  EXPECT_GT(first.cpu_busy.value(), 0.04 / cores);
  EXPECT_GT(first.memory_used_bytes.value(), 1e6);
  EXPECT_GE(first.runnable.value(), 1);
}
