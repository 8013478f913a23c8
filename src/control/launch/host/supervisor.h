// The supervisor of one node's ranks, on the node's own host. It outlives who started it, and ends its ranks when they
// are to be stopped, when it gets a signal itself, and when nobody has renewed the lease for lease_s: so nothing
// outlives a controller that was killed, or a network that is gone, for longer. It knows files (job.h, job_state.h),
// and neither ssh nor Slurm.
#pragma once

#include <filesystem>
#include <functional>

namespace assay {

// Runs the job of `node` in `folder` to its end, in this process. `started` is called once the ranks run. Returns the
// exit code: 0, that of the rank that decided (128 + signal), or 4 where its surroundings failed. Throws DataError for
// a job that is not one and InfrastructureError when the ranks cannot be started; the state file says so too.
int supervise(const std::filesystem::path& folder, int node, const std::function<void()>& started);

// The same in a process of its own that has left the caller's session; returns when the ranks run. Throws what
// supervise() throws before that. Call it before any thread is started.
void supervise_detached(const std::filesystem::path& folder, int node);

}  // namespace assay
