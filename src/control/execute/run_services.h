// The launcher, the hosts and the options that a plan asks for: those of its site, or this machine where it has none.
#pragma once

#include <memory>

#include "execute/executor.h"

namespace assay {

struct RunServices {
  std::unique_ptr<Launcher> launcher;
  std::unique_ptr<HostPool> hosts;  // options.hosts
  ExecuteOptions options;
};

// Throws DataError when the plan names a launcher that this version does not have.
RunServices run_services(const Plan& plan, const ExecuteOptions& options = {});

}  // namespace assay
