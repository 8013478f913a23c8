// Watches this host while something is measured: one line of JSON a sample into a file, until it is destroyed.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "monitor/sample.h"

namespace assay {

struct MonitorOptions {
  double interval_s = 1;
  SamplerOptions sampler = {};
  std::vector<std::string> device_command = {};  // monitor/devices.h; empty: devices are unknown
  double device_time_limit_s = 10;
};

// The last sample is taken when it is destroyed, so that also what is shorter than the interval is watched. A disk that
// is full ends the watching, not the job: lines that could not be written are missing, and that shows as a gap.
class Monitor {
 public:
  // Appends; throws InfrastructureError when the file cannot be opened, UsageError for an interval below 0.01 s.
  explicit Monitor(const std::filesystem::path& path, MonitorOptions options = {});
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

 private:
  void watch();
  void watch_devices();
  void write(const Sample& sample);
  Json fresh_devices();
  bool sleep_until(std::chrono::steady_clock::time_point when);  // false: time to end

  MonitorOptions options_;
  std::filesystem::path path_;
  FileDescriptor file_;
  FileDescriptor wake_read_, wake_write_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  Json devices_ = nullptr;
  std::chrono::steady_clock::time_point devices_at_{};
  std::thread thread_, device_thread_;
};

}  // namespace assay
