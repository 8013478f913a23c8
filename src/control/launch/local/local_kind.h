// `launcher: local`: this machine, as one host.
#pragma once

#include "launch/launcher_kind.h"

namespace assay {

const LauncherKind* local_kind();

}  // namespace assay
