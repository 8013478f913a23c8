// Runs the ranks as processes of this machine. Of a job over several hosts it starts those of this one.
#pragma once

#include "launch/launcher.h"

namespace assay {

class LocalLauncher : public Launcher {
 public:
  std::string name() const override { return "local"; }
  std::unique_ptr<RunningStep> start(const LaunchRequest& request) override;
};

}  // namespace assay
