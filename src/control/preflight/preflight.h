// Before anything starts: every host of a run is asked at once what it is and has, and all problems are told at once,
// each with the host and what to do about it. How a host is reached is the caller's affair.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/process.h"
#include "launch/launcher_kind.h"

namespace assay {

struct DataNeed {
  std::string path;                                // as the host sees it
  std::map<std::string, std::string> sha256 = {};  // of files in it, relative
  bool check_hashes = false;                       // otherwise the files need only be there
};

// What the hosts of a run must have.
struct PreflightNeeds {
  bool same_version = true;  // assay there is the one here, to the commit
  std::vector<std::string> paths = {};
  std::map<std::string, std::string> programs =
      {};  // name or absolute path -> PATH that it is looked for in; "": theirs
  std::vector<DataNeed> data = {};
  std::string disk_path = {};  // where the host writes; empty: its work_dir, wherever that is
  int64_t min_free_bytes = 0;
  std::vector<int> master_ports = {};  // to be free on the first host
  std::string hardware = "cpu";
  std::vector<std::string> device_command = {};  // a vendor's, that prints how many there are; not for "cpu"
  // The number in what it printed; empty: the first number in it.
  std::function<std::optional<int>(std::string_view)> count_devices = {};
  std::map<std::string, std::vector<std::string>> versions = {};  // program -> argv that prints it; must run
  bool page_cache = false;                                        // it must be allowed to drop it
  std::string own_run = {};  // the run that asks: devices that it has itself are not in its way
};

inline constexpr double kClockSkewWarning = 1;  // seconds; samples and records of hosts are put beside each other
inline constexpr double kClockSkewError = 5;

struct PreflightProblem {
  enum class Severity { Warning, Error };
  Severity severity = Severity::Error;
  std::string host;
  std::string what;  // "data /data/x: train.bin is missing"
  std::string fix;   // what to do
  std::string text() const;
};

struct PreflightReport {
  std::vector<PreflightProblem> problems;  // in the order of the hosts
  std::map<std::string, Json> hosts;       // what each said (preflight/probe.h), for the environment of results
  bool ok() const;                         // warnings only, or nothing
};
// Every host with the devices of it that are to be used: they must exist, and no other run may have them.
PreflightReport run_preflight(const std::vector<NodePlace>& hosts, const PreflightNeeds& needs, const HostRunner& run);

// The question for one host, the argument of `assay probe`: all but the hashes of data, whose sizes must be known
// first.
Json probe_request(const PreflightNeeds& needs, const NodePlace& place, bool is_first);
// What is wrong with an answer. The host's clock must have shown `answer.time_us` between the two times.
std::vector<PreflightProblem> judge_probe(const PreflightNeeds& needs, const NodePlace& place, bool is_first,
                                          const Json& answer, int64_t asked_us, int64_t answered_us);

}  // namespace assay
