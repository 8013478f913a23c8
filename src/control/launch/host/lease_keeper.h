// Keeps the leases of jobs from a thread of its own, so that a controller that is busy elsewhere does not lose them.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

namespace assay {

// How often a lease of so many seconds is renewed: every second, and oftener where it is short.
double lease_period_s(double lease_s);

class LeaseKeeper {
 public:
  // Renews the leases of these nodes in a folder that their supervisors see too, at once and until it is destroyed.
  LeaseKeeper(std::filesystem::path folder, std::vector<int> nodes, double lease_s);
  ~LeaseKeeper();
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

 private:
  void keep();

  const std::filesystem::path folder_;
  const std::vector<int> nodes_;
  const double period_s_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace assay
