// Starts all nodes of a job at once, over a transport (transport.h): the same rules whether hosts are reached by ssh or
// are this machine.
#pragma once

#include <functional>
#include <memory>

#include "launch/launcher.h"
#include "launch/multi_node/transport.h"

namespace assay {

class HostsLauncher : public Launcher {
 public:
  explicit HostsLauncher(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}
  std::string name() const override { return transport_->name(); }
  // Also throws ConfigError for a request whose nodes do not fit its numbers. May be called by several threads at once.
  std::unique_ptr<RunningStep> start(const LaunchRequest& request) override;
  // Also throws InfrastructureError when a host cannot be asked.
  std::unique_ptr<RunningStep> attach(const LaunchRequest& request) override;

 private:
  std::unique_ptr<Transport> transport_;
};

// Calls `work` with 0 .. count - 1, many at once, and returns when all are done. What they throw becomes one
// InfrastructureError that tells of every one of them; an error of another kind is thrown as it is.
void for_all(size_t count, const std::function<void(size_t)>& work);

}  // namespace assay
