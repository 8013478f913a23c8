// The counters of the kernel that samples are differences of, read from /proc and /sys. Each is null where the system
// does not have it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace assay {

struct CpuTicks {
  double busy = 0;  // programs and the kernel for them: neither interrupts nor steal
  double idle = 0;
  double iowait = 0;
  double interrupts = 0;
  double steal = 0;
  int cores = 0;
  double runnable = 0;
  double total() const { return busy + idle + iowait + interrupts + steal; }
};
std::optional<CpuTicks> read_cpu(const std::filesystem::path& proc);

// Bytes of /proc/meminfo by name: "MemAvailable".
std::map<std::string, double> read_memory(const std::filesystem::path& proc);
std::optional<double> read_swapped_bytes(const std::filesystem::path& proc);  // in and out, since boot
std::optional<double> read_load(const std::filesystem::path& proc);

struct TwoWays {
  double in = 0;   // read, received
  double out = 0;  // written, sent
};
// Bytes of all real disks: what is built from others (dm-, md) or from memory (loop, zram) would count twice.
std::optional<TwoWays> read_disks(const std::filesystem::path& proc, const std::filesystem::path& sys);
// Bytes of all interfaces but the loopback and what leads to others (bridges, bonds, ends of containers).
std::optional<TwoWays> read_network(const std::filesystem::path& proc);

struct PressureTotals {  // seconds since boot in which tasks waited
  std::optional<double> some;
  std::optional<double> full;
};
PressureTotals read_pressure(const std::filesystem::path& proc, const char* resource);  // "cpu", "memory", "io"

// Joules that the packages and memories of this host have taken, by zone of the powercap interface, and where each
// counter turns over; empty when there is none or it may not be read.
struct EnergyCounter {
  double joules = 0;
  double range = 0;
};
std::map<std::string, EnergyCounter> read_energy(const std::filesystem::path& sys);

}  // namespace assay
