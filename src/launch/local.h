// Runs the ranks as processes of this machine.
#pragma once

#include "launch/launcher.h"

namespace assay {

class LocalLauncher : public Launcher {
 public:
  std::string name() const override { return "local"; }
  std::unique_ptr<RunningStep> start(const LaunchRequest& request) override;
};

// A TCP port of the loopback interface that is free now.
int free_port();

}  // namespace assay
