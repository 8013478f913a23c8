// One job at a time on a device: a lock a device, held by the job's supervisor, whoever started it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"

namespace assay {

struct DeviceUse {
  std::string hardware;  // "A100"; a name of its locks
  std::vector<int> devices;
  std::string run_id;  // told to others who find the device in use
};

// ASSAY_LOCKS or /tmp/assay-locks.
std::filesystem::path lock_folder();

// Locks are held until it is destroyed, or until the process ends, however it ends.
class DeviceLocks {
 public:
  DeviceLocks() = default;
  // All or none. Throws InfrastructureError that names device, host, run and user of who has it.
  DeviceLocks(const std::filesystem::path& folder, const DeviceUse& use);
  DeviceLocks(DeviceLocks&&) = default;
  DeviceLocks& operator=(DeviceLocks&& other) noexcept;
  ~DeviceLocks() { release(); }

 private:
  void release();  // also for a process that was forked since, and has them open too

  std::vector<FileDescriptor> files_;
};

}  // namespace assay
