#include "monitor/counters.h"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "base/text.h"

namespace assay {

namespace {

namespace fs = std::filesystem;

constexpr double kSectorBytes = 512;  // of /proc/diskstats, whatever the disk's own are
constexpr double kKibibyte = 1024;
constexpr double kMicro = 1e-6;

bool begins_with_any(const std::string& name, std::initializer_list<const char*> prefixes) {
  for (const char* prefix : prefixes) {
    if (name.rfind(prefix, 0) == 0) return true;
  }
  return false;
}

std::optional<double> number_in(const fs::path& path) {
  std::ifstream file(path);
  double value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

std::string word_in(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

}  // namespace

std::optional<CpuTicks> read_cpu(const fs::path& proc) {
  std::ifstream file(proc / "stat");
  std::optional<CpuTicks> ticks;
  int cores = 0;
  std::optional<double> runnable;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "cpu") {
      double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
      if (!(words >> user >> nice >> system >> idle)) continue;
      words >> iowait >> irq >> softirq >> steal;  // old kernels have fewer
      ticks = CpuTicks{
          .busy = user + nice + system, .idle = idle, .iowait = iowait, .interrupts = irq + softirq, .steal = steal};
    } else if (name.rfind("cpu", 0) == 0) {
      ++cores;
    } else if (name == "procs_running") {
      double value = 0;
      if (words >> value) runnable = value;
    }
  }
  if (!ticks || cores == 0) return std::nullopt;
  ticks->cores = cores;
  ticks->runnable = runnable.value_or(0);
  return ticks;
}

std::map<std::string, double> read_memory(const fs::path& proc) {
  std::map<std::string, double> out;
  std::ifstream file(proc / "meminfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::istringstream rest(line.substr(colon + 1));
    double value = 0;
    if (rest >> value) out[line.substr(0, colon)] = value * kKibibyte;
  }
  return out;
}

std::optional<double> read_swapped_bytes(const fs::path& proc) {
  static const double page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  std::ifstream file(proc / "vmstat");
  std::optional<double> pages;
  std::string name;
  double value = 0;
  while (file >> name >> value) {
    if (name == "pswpin" || name == "pswpout") pages = pages.value_or(0) + value;
  }
  return pages ? std::optional(*pages * page) : std::nullopt;
}

std::optional<double> read_load(const fs::path& proc) { return number_in(proc / "loadavg"); }

std::optional<TwoWays> read_disks(const fs::path& proc, const fs::path& sys) {
  std::ifstream file(proc / "diskstats");
  if (!file) return std::nullopt;
  TwoWays out;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    int major = 0, minor = 0;
    std::string name;
    double reads = 0, merged = 0, sectors_read = 0, ms = 0, writes = 0, sectors_written = 0;
    if (!(words >> major >> minor >> name >> reads >> merged >> sectors_read >> ms >> writes >> merged >>
          sectors_written)) {
      continue;
    }
    if (begins_with_any(name, {"loop", "ram", "zram", "dm-", "md", "sr"})) continue;
    std::error_code ignored;
    if (!fs::exists(sys / "block" / name, ignored)) continue;  // a partition
    out.in += sectors_read * kSectorBytes;
    out.out += sectors_written * kSectorBytes;
  }
  return out;
}

std::optional<TwoWays> read_network(const fs::path& proc) {
  std::ifstream file(proc / "net/dev");
  if (!file) return std::nullopt;
  TwoWays out;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string name(trim(std::string_view(line).substr(0, colon)));
    if (name == "lo" || begins_with_any(name, {"ifb", "docker", "br", "virbr", "veth", "bond", "cni"})) continue;
    std::istringstream words(line.substr(colon + 1));
    double received = 0, skipped = 0, sent = 0;
    if (!(words >> received)) continue;
    for (int i = 0; i < 7; ++i) words >> skipped;
    if (!(words >> sent)) continue;
    out.in += received;
    out.out += sent;
  }
  return out;
}

PressureTotals read_pressure(const fs::path& proc, const char* resource) {
  PressureTotals out;
  std::ifstream file(proc / "pressure" / resource);
  for (std::string line; std::getline(file, line);) {
    const size_t at = line.find("total=");
    if (at == std::string::npos) continue;
    const auto total = parse_double(trim(std::string_view(line).substr(at + 6)));
    if (!total) continue;
    if (line.rfind("some", 0) == 0) out.some = *total * kMicro;
    if (line.rfind("full", 0) == 0) out.full = *total * kMicro;
  }
  return out;
}

std::map<std::string, EnergyCounter> read_energy(const fs::path& sys) {
  std::map<std::string, EnergyCounter> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(sys / "class/powercap", error)) {
    const std::string kind = word_in(entry.path() / "name");
    // "core" and "uncore" are parts of a package, "psys" holds all of them.
    if (kind.rfind("package", 0) != 0 && kind != "dram") continue;
    const auto energy = number_in(entry.path() / "energy_uj");
    if (!energy) return {};  // a sum without one of them would be wrong
    out[entry.path().filename().string()] = {
        .joules = *energy * kMicro, .range = number_in(entry.path() / "max_energy_range_uj").value_or(0) * kMicro};
  }
  return out;
}

}  // namespace assay
