#include "launch/host/lease_keeper.h"

#include <algorithm>

#include "launch/host/job_state.h"

namespace assay {

double lease_period_s(double lease_s) { return std::min(1.0, lease_s / 4); }

LeaseKeeper::LeaseKeeper(std::filesystem::path folder, std::vector<int> nodes, double lease_s)
    : folder_(std::move(folder)), nodes_(std::move(nodes)), period_s_(lease_period_s(lease_s)) {
  for (const int node : nodes_) renew_lease(folder_, node);
  thread_ = std::thread([this] { keep(); });
}

LeaseKeeper::~LeaseKeeper() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LeaseKeeper::keep() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::duration<double>(period_s_), [this] { return ending_; })) {
    for (const int node : nodes_) renew_lease(folder_, node);
  }
}

}  // namespace assay
