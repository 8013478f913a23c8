// `launcher: slurm`: jobs of Slurm, on nodes that share the run folder.
#pragma once

#include "launch/launcher_kind.h"

namespace assay {

const LauncherKind* slurm_kind();

}  // namespace assay
