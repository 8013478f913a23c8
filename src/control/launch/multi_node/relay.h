// A relay stands between a supervisor and a controller that has no file system in common with it: over its standard
// input it is told to renew the lease and to stop the job, over its standard output it tells what the job's files gain,
// each byte once (frames.h). It ends when its input ends, and nothing else depends on it.
#pragma once

#include <filesystem>

namespace assay {

// Serves the job of `node` in `folder`. Throws DataError for a job or a line that is not one.
void run_relay(const std::filesystem::path& folder, int node, int in_fd, int out_fd);

}  // namespace assay
