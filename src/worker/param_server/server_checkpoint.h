// Checkpoints of servers: one file a server and step, step_12.server_0_of_2.safetensors, written beside its name and
// renamed, with a SHA-256 over everything in it. A job with another number of servers reads the files of all of them.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "param_server/table.h"

namespace assay::ps {

// Which server of how many.
struct ServerId {
  int index = 0;
  int num_servers = 1;
};

struct ShardState {
  int64_t step = 0;
  int64_t num_updates = 0;
  std::vector<TableState> tables;
};

std::string server_checkpoint_name(int64_t step, const ServerId& server);
// Keeps the newest `keep` steps of this server. Returns the path. Throws InfrastructureError.
std::filesystem::path write_server_checkpoint(const std::filesystem::path& folder, const ShardState& state,
                                              const ServerId& server, int keep);

// What the server needs for one step: its own file, or those of all servers of a job with another number of them.
// Throws DataError naming the file that is missing or damaged.
std::vector<ShardState> load_server_checkpoint(const std::filesystem::path& folder, int64_t step,
                                               const ServerId& server);
// The newest step that is whole; each damaged one is named. Empty when there is none. Removes what a killed server left
// of a file in work.
std::vector<ShardState> load_newest_server_checkpoint(const std::filesystem::path& folder, const ServerId& server,
                                                      const std::function<void(const std::string& reason)>& on_damaged);

}  // namespace assay::ps
