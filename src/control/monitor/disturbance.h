// Was something else going on while we measured? Looks at the samples of every node between two times, sums them up,
// and says with figures what makes the measurement suspect. Files may be torn, damaged or hostile.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"

namespace assay {

// Where a figure becomes visible in a measurement. A node is disturbed when the mean is above `mean`, or when at least
// kDisturbedShare of the samples are above `sample`. Reasons in docs/guide/monitoring.md.
struct DisturbanceLimit {
  double mean;
  double sample;
};
inline constexpr double kDisturbedShare = 0.2;
inline constexpr DisturbanceLimit kForeignCpuLimit = {0.10, 0.25};      // of all processors
inline constexpr DisturbanceLimit kStealLimit = {0.03, 0.10};           // of all processors
inline constexpr DisturbanceLimit kMemoryPressureLimit = {0.02, 0.10};  // of the time some task waited for memory
inline constexpr DisturbanceLimit kSwapLimit = {1e6, 10e6};             // bytes/s in and out
inline constexpr DisturbanceLimit kForeignNetworkLimit = {10e6, 50e6};  // bytes/s, of a job that stays on one node
inline constexpr double kGapIntervals = 5;  // without a sample for so many intervals, and kMinGap: it stood still
inline constexpr double kMinGap = 3;        // seconds

struct NodeSamples {
  std::string host;            // as people call it
  std::filesystem::path file;  // monitor.node<I>.jsonl
};

struct DisturbanceOptions {
  bool uses_network = false;  // the job itself does: more than one node, or data from afar
};

struct Disturbance {
  // {"nodes": [{"host", "samples", "seconds", "damaged_lines", "figures": {name: {"mean", "max"} or null},
  //   "energy_j", "devices": [...] or null, "devices_energy_j"}], "energy_j"}; unknown figures are null.
  Json summary = nullptr;
  std::vector<std::string> suspect;  // sentences; empty: nothing was visible
};

// Times in microseconds since 1970, the ends of what was measured. A node without a sample in between is in the summary
// with "samples": 0; whoever asked for a monitor may call that suspect.
Disturbance find_disturbance(const std::vector<NodeSamples>& nodes, int64_t from_us, int64_t until_us,
                             DisturbanceOptions options = {});

}  // namespace assay
