// NVIDIA devices through the management library that comes with the driver, looked up at run time: a machine without it
// is a normal machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay {

struct NvmlDevice {
  std::string name;
  std::string uuid;
  int64_t memory_bytes = 0;
};

struct NvmlReport {
  enum class State { LibraryAbsent, NoDriver, Ok };
  State state = State::LibraryAbsent;
  std::string detail;  // "libnvidia-ml.so.1 is not installed", "driver not loaded (error 9)", "2 devices"
  std::vector<NvmlDevice> devices;
};

// `library`: what to open; another one only in tests.
NvmlReport query_nvml(const std::string& library = "libnvidia-ml.so.1");

}  // namespace assay
