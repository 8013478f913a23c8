// Is this machine set up right? Looks at facts that were gathered elsewhere, so that a sick machine can be tested
// without having one; each problem comes with the command that fixes it.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace assay {

struct Finding {
  enum class State { Good, Note, Problem };
  std::string name;        // "BLAS"
  std::string value = {};  // "OpenBLAS 0.3.21, OpenMP, 2 threads, 182 of 210 GFLOPS (87 %)"
  State state = State::Good;
  std::string fix = {};  // what to type, when there is a problem
};

// `worker` is what `assay-worker info` printed, null when there is no worker or it did not start; `worker_error` says
// why. `host` is describe_environment(); `data` lists {"name", "path", "found", "package"} of each case's data set;
// `disk_free_bytes` of the folder for runs, null when unknown.
struct MachineFacts {
  Json host = Json::object();
  Json worker = nullptr;
  std::string worker_error = {};
  Json data = Json::array();
  Json disk_free_bytes = nullptr;
};

std::vector<Finding> examine_machine(const MachineFacts& facts);

}  // namespace assay
