// What a supervisor wrote about the node that it ran a step on, as far as results need it: who the host is. The rest of
// that file concerns launch/host/job_state.h alone.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/json.h"

namespace assay {

struct NodeFacts {
  std::string host;            // as it calls itself
  Json environment = nullptr;  // monitor/environment.h; null: not reported yet
};

// nullopt: there is no such file. Throws DataError when it is damaged.
std::optional<NodeFacts> read_node_facts(const std::filesystem::path& step_folder, int node);

}  // namespace assay
