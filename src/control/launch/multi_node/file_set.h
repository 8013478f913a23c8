// Which files go to a host that shares no file system with the controller.
#pragma once

#include "base/file_set.h"

namespace assay {

// The programs that a host needs: assay, its worker and the libraries that they open, from the folder of this program.
FileSet own_programs();

// The files of a step before it starts: its folder without what ranks and supervisors write and what is brought back,
// and what the request names besides. Relative to the run folder. Throws ConfigError for a path outside of it.
struct LaunchRequest;
FileSet files_of_step(const LaunchRequest& request);

}  // namespace assay
