// What a supervisor says about its job, and how it is held on a lease and stopped: small files in the step's folder.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/files.h"
#include "base/json.h"
#include "launch/launcher.h"

namespace assay {

struct JobState {
  enum class Phase { Starting, Running, Ended };
  // Why it ended where its ranks did not: "infrastructure", or
  static constexpr const char* kLeaseLapsed = "lease";  // not renewed for lease_s
  static constexpr const char* kTerminated = "signal";  // the supervisor was told to end by a signal

  Phase phase = Phase::Starting;
  std::string run_id = {};
  int attempt = 1;
  int node = 0;
  std::string host = {};  // as it calls itself
  int64_t pid = 0;        // of the supervisor
  int64_t started_us = 0;
  int64_t ended_us = 0;                      // 0: not yet
  std::map<std::string, int64_t> base = {};  // what growing files held before this attempt
  Json environment = nullptr;                // of the host (monitor/environment.h); null: not told yet
  std::optional<LaunchResult> result = {};   // its ranks are those of this node
  std::string error_kind = {};               // "" when all there is to say is in the result
  std::string error = {};

  bool ended() const { return phase == Phase::Ended; }
};

Json to_json(const LaunchResult& result);
LaunchResult launch_result_of(const Json& value, const std::string& where);  // throws DataError
Json to_json(const JobState& state);
JobState job_state_of(const Json& value, const std::string& where);  // throws DataError

// Replaces the file as a whole; on a full disk writes over the old one, which is longer. Throws InfrastructureError.
void write_state(const std::filesystem::path& folder, const JobState& state);
// nullopt: there is none (yet), or it is just being written over. Throws DataError when it is not what it should be.
std::optional<JobState> read_state(const std::filesystem::path& folder, int node);

// The same where it is that of the job's run and attempt; nullopt also when an earlier attempt left it.
std::optional<JobState> state_of_attempt(const LaunchRequest& job);

// A lease is kept by writing something else into its file. Neither throws: who cannot write loses the lease.
void renew_lease(const std::filesystem::path& folder, int node);
std::string read_lease(const std::filesystem::path& folder, int node);

void write_stop(const std::filesystem::path& folder, int node, double grace_s);  // throws InfrastructureError
std::optional<double> read_stop(const std::filesystem::path& folder, int node);  // the grace; nullopt: not asked to

// The lock that a supervisor holds for life. An empty descriptor: another one holds it. Throws InfrastructureError.
FileDescriptor take_supervisor_lock(const std::filesystem::path& folder, int node);
// Whether one lives. Only on the host it runs on is the answer certain.
bool supervisor_lives(const std::filesystem::path& folder, int node);

// Ends what a supervisor that was killed left: processes with the marks of the job's ranks. Returns how many there
// were.
size_t end_leftovers(const LaunchRequest& job);

}  // namespace assay
