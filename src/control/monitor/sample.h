// One look at this host: processor, memory, disks, network, pressure, power, from /proc and /sys. What the system does
// not tell is null, never 0. Knows nothing of jobs but the mark that their processes carry.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/json.h"

namespace assay {

struct SamplerOptions {
  // Processes whose ASSAY_TREE is this mark, or begins with it and a slash, are ours (ProcessOptions::tree_mark), and
  // so is this process. Empty: all that carry a mark.
  std::string tree_mark = {};
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
};

// Figures are shares of the interval since the last sample, and rates in it; see docs/guide/monitoring.md.
struct Sample {
  using Figure = std::optional<double>;
  int64_t time_us = 0;  // its end
  double interval_s = 0;
  int cores = 0;
  Figure cpu_busy, cpu_iowait, cpu_steal, cpu_interrupts;  // of all processors together
  Figure cpu_own, cpu_other_runs, cpu_foreign;             // foreign: busy with neither us nor interrupts
  Figure load_1, runnable;
  Figure memory_used_bytes, memory_available_bytes, swap_used_bytes, swap_bytes_per_s;
  Figure disk_read_bytes_per_s, disk_write_bytes_per_s;
  Figure net_rx_bytes_per_s, net_tx_bytes_per_s;
  Figure pressure_cpu_some, pressure_cpu_full, pressure_memory_some, pressure_memory_full, pressure_io_some,
      pressure_io_full;
  Figure power_w;
  Json devices = nullptr;  // a list of objects (monitor/devices.h), null: unknown
};

// The names of the figures above, with where they stand, in the order of the JSON form.
struct SampleField {
  const char* name;
  Sample::Figure Sample::*figure;
};
const std::array<SampleField, 24>& sample_fields();

Json to_json(const Sample& sample);
// Hostile input: nullopt when it is no sample; a figure that is no finite number >= 0 counts as unknown.
std::optional<Sample> sample_of(const Json& value);

class Sampler {
 public:
  explicit Sampler(SamplerOptions options = {});  // notes the counters that the first sample starts from
  ~Sampler();
  Sample take();  // never throws for what /proc and /sys do not have

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay
