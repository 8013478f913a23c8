#include "launch/host/rank_environment.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "launch/host/port.h"

namespace assay {

namespace {

std::string address_of_node(const LaunchRequest& request, int node) {
  return request.placement.nodes.empty() ? "127.0.0.1"
                                         : request.placement.nodes.at(static_cast<size_t>(node)).host.reached_at();
}

// Devices of a node; without any, one for each rank, counted from 0.
std::vector<int> devices_of_node(const LaunchRequest& request, int node) {
  if (!request.placement.nodes.empty()) {
    const auto& devices = request.placement.nodes.at(static_cast<size_t>(node)).devices;
    if (!devices.empty()) return devices;
  }
  std::vector<int> out;
  for (int i = 0; i < request.ranks.nproc; ++i) out.push_back(i);
  return out;
}

bool hosts_are_known(const LaunchRequest& request) {
  return request.ranks.nnodes == 1 || !request.placement.nodes.empty();
}

// The port that rank 0 listens at: the one that was asked for, if it is free, or any.
void settle_port(std::map<std::string, std::string>& env, int node_rank) {
  const auto given = env.find("MASTER_PORT");
  if (given == env.end()) {
    env["MASTER_PORT"] = std::to_string(free_port());
  } else if (const auto port = parse_int(given->second); port && node_rank == 0) {
    check_port_free(static_cast<int>(*port));
  }
}

std::string local_endpoints(const LaunchRequest& request) {
  if (request.ranks.nnodes > 1) {
    throw ConfigError(
        "paddle over several hosts needs a launcher that starts all of them, so that every rank knows every port");
  }
  std::vector<int> ports;
  for (int i = 0; i < request.ranks.nproc; ++i) ports.push_back(free_port());
  return paddle_endpoints(request, {ports});
}

std::string write_rank_table(const LaunchRequest& request) {
  if (!hosts_are_known(request)) {
    throw ConfigError("mindspore over several hosts needs a launcher that starts all of them, for the table of ranks");
  }
  const fs::path path = request.folder / fmt::format("rank_table.node{}.json", request.ranks.node_rank);
  write_file_atomic(path, to_pretty(rank_table(request)) + "\n");
  return path.string();
}

}  // namespace

std::string framework_family(const std::string& framework) { return framework.substr(0, framework.find('_')); }

bool needs_port_per_rank(const LaunchRequest& request) {
  return framework_family(request.command.framework) == "paddle";
}

bool needs_rank_table(const LaunchRequest& request) {
  return framework_family(request.command.framework) == "mindspore" && !request.command.env.count("RANK_TABLE_FILE");
}

std::string paddle_endpoints(const LaunchRequest& request, const std::vector<std::vector<int>>& ports) {
  std::vector<std::string> endpoints;
  for (size_t node = 0; node < ports.size(); ++node) {
    for (const int port : ports[node]) {
      endpoints.push_back(fmt::format("{}:{}", address_of_node(request, static_cast<int>(node)), port));
    }
  }
  return join(endpoints, ",");
}

std::map<std::string, std::string> node_environment(const LaunchRequest& request) {
  const int world_size = request.ranks.world_size();
  std::map<std::string, std::string> env = {{"WORLD_SIZE", std::to_string(world_size)},
                                            {"NODE_RANK", std::to_string(request.ranks.node_rank)},
                                            {"LOCAL_WORLD_SIZE", std::to_string(request.ranks.nproc)},
                                            {"MASTER_ADDR", "127.0.0.1"}};
  if (!request.site.visible_devices.empty()) {
    std::vector<std::string> devices;
    for (const int device : devices_of_node(request, request.ranks.node_rank))
      devices.push_back(std::to_string(device));
    env[request.site.visible_devices] = join(devices, ",");
  }
  for (const auto& [name, value] : request.command.env) env[name] = value;
  if (world_size > 1) settle_port(env, request.ranks.node_rank);
  const std::string family = framework_family(request.command.framework);
  if (family == "paddle" && !env.count(kPaddleEndpoints)) env[kPaddleEndpoints] = local_endpoints(request);
  if (needs_rank_table(request)) env["RANK_TABLE_FILE"] = write_rank_table(request);
  return env;
}

std::map<std::string, std::string> rank_environment(const LaunchRequest& request, int local_rank,
                                                    const std::map<std::string, std::string>& node) {
  std::map<std::string, std::string> env = node;
  const int rank = request.ranks.first_rank() + local_rank;
  env["RANK"] = std::to_string(rank);
  env["LOCAL_RANK"] = std::to_string(local_rank);
  const std::string family = framework_family(request.command.framework);
  if (family == "paddle") {
    const auto endpoints = split(env.at(kPaddleEndpoints), ',');
    if (endpoints.size() != static_cast<size_t>(request.ranks.world_size())) {
      throw ConfigError(fmt::format("{} names {} ranks, the job has {}", kPaddleEndpoints, endpoints.size(),
                                    request.ranks.world_size()));
    }
    env["PADDLE_TRAINER_ID"] = std::to_string(rank);
    env["PADDLE_TRAINERS_NUM"] = std::to_string(request.ranks.world_size());
    env["PADDLE_CURRENT_ENDPOINT"] = endpoints[static_cast<size_t>(rank)];
    env["TRAINING_ROLE"] = "TRAINER";
  } else if (family == "mindspore") {
    env["RANK_ID"] = std::to_string(rank);
    env["RANK_SIZE"] = std::to_string(request.ranks.world_size());
    env["DEVICE_ID"] =
        std::to_string(devices_of_node(request, request.ranks.node_rank).at(static_cast<size_t>(local_rank)));
  }
  return env;
}

Json rank_table(const LaunchRequest& request) {
  Json servers = Json::array();
  for (int node = 0; node < request.ranks.nnodes; ++node) {
    const std::string address = address_of_node(request, node);
    const auto own = request.placement.nodes.empty()
                         ? std::map<int, std::string>()
                         : request.placement.nodes.at(static_cast<size_t>(node)).device_addresses;
    Json devices = Json::array();
    int local_rank = 0;
    for (const int device : devices_of_node(request, node)) {
      const auto found = own.find(device);
      devices.push_back({{"device_id", std::to_string(device)},
                         {"device_ip", found == own.end() ? address : found->second},
                         {"rank_id", std::to_string(node * request.ranks.nproc + local_rank++)}});
    }
    servers.push_back({{"server_id", address}, {"device", devices}, {"host_nic_ip", "reserve"}});
  }
  return {{"version", "1.0"},
          {"server_count", std::to_string(request.ranks.nnodes)},
          {"server_list", servers},
          {"status", "completed"}};
}

}  // namespace assay
