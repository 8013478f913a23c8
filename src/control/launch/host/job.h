// The job of one node, as a file: what a controller asks of the supervisor on a host (supervisor.h), and the names of
// the files by which they meet in the step's folder. Whoever reads them believes nothing: sizes, types and owners are
// checked.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "launch/launcher.h"

namespace assay {

// Of node I: "job.node<I>.json", ...
enum class JobFile {
  Job,       // the request, mode 0600: its environment may hold secrets
  State,     // launch/host/job_state.h
  Lease,     // rewritten at least every second by who controls the job
  Stop,      // its existence asks for the end; holds the seconds of grace
  Monitor,   // samples of the host
  Log,       // what the supervisor itself has to say
  Lock,      // held by the supervisor as long as it lives
  Received,  // at the controller: where its copies of the files of this attempt begin
};
std::string job_file_name(JobFile kind, int node);

// Reads a regular file of at most `max_bytes`. No link, no device, no folder. Throws DataError naming file and reason.
std::string read_limited(const std::filesystem::path& path, size_t max_bytes);

// The request of one node. Hosts are told by name and address, never how to log in to them.
Json to_json(const LaunchRequest& request);
// Throws DataError that names `where` and the field: unknown or missing, of the wrong type, out of range.
LaunchRequest launch_request_of(const Json& value, const std::string& where);

// Writes job.node<node_rank>.json into `folder`, mode 0600. Throws InfrastructureError.
void write_job(const std::filesystem::path& folder, const LaunchRequest& request);
// The job of a node; request.folder is `folder`. Throws DataError, also when others could have written the file.
LaunchRequest read_job(const std::filesystem::path& folder, int node);

// What processes of the node's setup carry, beside the marks of its ranks.
std::string setup_mark(const LaunchRequest& request);

// What the ranks of the node write into the step's folder: logs, records, and the node's monitor and supervisor log.
std::vector<std::string> growing_files(const LaunchRequest& request);

}  // namespace assay
