#include "base/server_role.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/error.h"
#include "base/text.h"

namespace assay::ps {

namespace {

constexpr const char* kRoleVariable = "TRAINING_ROLE";
constexpr const char* kServersVariable = "PADDLE_PSERVERS_IP_PORT_LIST";
constexpr const char* kNumTrainersVariable = "PADDLE_TRAINERS_NUM";
constexpr const char* kTrainerVariable = "PADDLE_TRAINER_ID";
constexpr const char* kHostVariable = "POD_IP";
constexpr const char* kPortVariable = "PADDLE_PORT";

// As the word that must be there; an empty variable is a missing one.
std::string required(const Environment& get, const char* name, const char* meaning) {
  const auto value = get(name);
  if (!value || trim(*value).empty()) {
    throw ConfigError(fmt::format("environment: {} is not set; it must be {}", name, meaning));
  }
  return std::string(trim(*value));
}

int number_in(const std::string& text, const char* name, int low, int high) {
  const auto value = parse_int(text);
  if (!value || *value < low || *value > high) {
    throw ConfigError(fmt::format("environment: {}={}: must be a number from {} to {}", name, text, low, high));
  }
  return static_cast<int>(*value);
}

Endpoint endpoint_of(const std::string& text) {
  const size_t colon = text.rfind(':');
  const std::string host = colon == std::string::npos ? "" : std::string(trim(text.substr(0, colon)));
  const auto port = colon == std::string::npos ? std::nullopt : parse_int(text.substr(colon + 1));
  if (host.empty() || !port || *port < 1 || *port > 65535) {
    throw ConfigError(fmt::format("environment: {}: '{}' is not HOST:PORT; it must be like 10.0.0.1:6001,10.0.0.2:6001",
                                  kServersVariable, text));
  }
  return {host, static_cast<int>(*port)};
}

std::vector<Endpoint> servers_of(const std::string& list) {
  std::vector<Endpoint> servers;
  for (const std::string& part : split(list, ',')) {
    if (trim(part).empty()) continue;  // Paddle's scripts often leave a comma at the end
    servers.push_back(endpoint_of(std::string(trim(part))));
    if (std::count(servers.begin(), servers.end(), servers.back()) > 1) {
      throw ConfigError(fmt::format("environment: {}: {} appears twice", kServersVariable, servers.back().text()));
    }
  }
  if (servers.empty() || servers.size() > kMaxServers) {
    throw ConfigError(fmt::format("environment: {}: must name 1 to {} servers", kServersVariable, kMaxServers));
  }
  return servers;
}

int server_index(const Environment& get, const std::vector<Endpoint>& servers) {
  const Endpoint own{required(get, kHostVariable, "the address of this server in PADDLE_PSERVERS_IP_PORT_LIST"),
                     number_in(required(get, kPortVariable, "the port of this server in PADDLE_PSERVERS_IP_PORT_LIST"),
                               kPortVariable, 1, 65535)};
  for (size_t i = 0; i < servers.size(); ++i) {
    if (servers[i] == own) return static_cast<int>(i);
  }
  throw ConfigError(fmt::format("environment: {} and {} say that this server is {}, which {} does not name",
                                kHostVariable, kPortVariable, own.text(), kServersVariable));
}

}  // namespace

std::string Endpoint::text() const { return fmt::format("{}:{}", host, port); }

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::optional<Role> role_from(const Environment& get) {
  const std::string name = get(kRoleVariable).value_or("");
  const bool has_list = !trim(get(kServersVariable).value_or("")).empty();
  if (!name.empty() && name != "TRAINER" && name != "PSERVER") {
    throw ConfigError(fmt::format("environment: {}={}: must be TRAINER or PSERVER", kRoleVariable, name));
  }
  if (!has_list && name != "PSERVER") return std::nullopt;  // collective training sets TRAINER too
  Role role;
  role.is_server = name == "PSERVER";
  role.servers = servers_of(required(get, kServersVariable, "the servers, like 10.0.0.1:6001,10.0.0.2:6001"));
  role.num_trainers =
      number_in(required(get, kNumTrainersVariable, "the number of trainers"), kNumTrainersVariable, 1, kMaxTrainers);
  role.index = role.is_server ? server_index(get, role.servers)
                              : number_in(required(get, kTrainerVariable, "the number of this trainer, from 0"),
                                          kTrainerVariable, 0, role.num_trainers - 1);
  return role;
}

std::vector<std::pair<std::string, std::string>> role_environment(const LocalJob& job, int rank) {
  const int num_servers = static_cast<int>(job.server_ports.size());
  ASSAY_CHECK(rank >= 0 && rank < num_servers + job.num_trainers, "no such process");
  std::vector<std::string> list;
  for (const int port : job.server_ports) list.push_back(Endpoint{"127.0.0.1", port}.text());
  const bool is_server = rank >= job.num_trainers;
  std::vector<std::pair<std::string, std::string>> out = {{kRoleVariable, is_server ? "PSERVER" : "TRAINER"},
                                                          {kServersVariable, join(list, ",")},
                                                          {kNumTrainersVariable, std::to_string(job.num_trainers)},
                                                          {kHostVariable, "127.0.0.1"}};
  if (is_server) {
    out.emplace_back(kPortVariable, std::to_string(job.server_ports[rank - job.num_trainers]));
  } else {
    out.emplace_back(kTrainerVariable, std::to_string(rank));
  }
  return out;
}

}  // namespace assay::ps
