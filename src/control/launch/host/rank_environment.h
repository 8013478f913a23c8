// The environment by which the ranks of a job find each other, in the words of each framework:
//   all        RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK MASTER_ADDR MASTER_PORT, and the variable of the
//              job that names a node's devices
//   paddle     PADDLE_TRAINER_ID PADDLE_TRAINERS_NUM PADDLE_CURRENT_ENDPOINT PADDLE_TRAINER_ENDPOINTS TRAINING_ROLE
//   mindspore  RANK_TABLE_FILE RANK_ID RANK_SIZE DEVICE_ID
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "launch/launcher.h"

namespace assay {

inline constexpr const char* kPaddleEndpoints = "PADDLE_TRAINER_ENDPOINTS";

// "paddle" of "paddle_2.5": what the environment depends on.
std::string framework_family(const std::string& framework);
// Paddle's ranks listen at a port each, which all of them know before any starts.
bool needs_port_per_rank(const LaunchRequest& request);
// MindSpore's ranks read a table of all devices, unless the job names one of its own.
bool needs_rank_table(const LaunchRequest& request);
// "host:port,host:port": `ports` has nproc ports of every node, in order.
std::string paddle_endpoints(const LaunchRequest& request, const std::vector<std::vector<int>>& ports);

// What the launcher of a node settles once: addresses, ports, the rank table. Throws InfrastructureError (no free port)
// and ConfigError (a job over several hosts whose hosts are not known).
std::map<std::string, std::string> node_environment(const LaunchRequest& request);
// The variables of one rank; `node` is what node_environment() gave.
std::map<std::string, std::string> rank_environment(const LaunchRequest& request, int local_rank,
                                                    const std::map<std::string, std::string>& node);

// The file that MindSpore's users know as hccl.json, made from the hosts and devices of the job. Of a device without an
// address of its own it has that of the host.
Json rank_table(const LaunchRequest& request);

}  // namespace assay
