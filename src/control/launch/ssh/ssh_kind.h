// `launcher: ssh`: hosts that are reached by ssh, each with a mirror of the run folder.
#pragma once

#include "launch/launcher_kind.h"

namespace assay {

const LauncherKind* ssh_kind();

}  // namespace assay
