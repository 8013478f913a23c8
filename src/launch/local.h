// Runs the ranks as processes of this machine. Of a job over several hosts it starts those of this one.
#pragma once

#include "launch/launcher.h"

namespace assay {

// What a rank gets between the failure of another and SIGKILL, and how long the cause of a lost connection is looked
// for.
inline constexpr double kPeerGraceSeconds = 3;

class LocalLauncher : public Launcher {
 public:
  std::string name() const override { return "local"; }
  std::unique_ptr<RunningStep> start(const LaunchRequest& request) override;
};

}  // namespace assay
