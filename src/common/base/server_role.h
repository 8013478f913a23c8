// Which part a process has in a job with parameter servers, from the environment that Paddle's launcher and TIPC's
// chains set:
//   TRAINING_ROLE                 PSERVER or TRAINER
//   PADDLE_PSERVERS_IP_PORT_LIST  10.0.0.1:6001,10.0.0.2:6001: the servers, in one order for all
//   PADDLE_TRAINERS_NUM           how many trainers there are
//   PADDLE_TRAINER_ID             of a trainer, from 0
//   POD_IP, PADDLE_PORT           of a server: its own entry of the list
// A list of servers without TRAINING_ROLE means a trainer, as Paddle has it for trainers started by hand.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace assay::ps {

inline constexpr int kMaxServers = 4096;
inline constexpr int kMaxTrainers = 65536;

struct Endpoint {
  std::string host;
  int port = 0;
  std::string text() const;  // "host:port"
  bool operator==(const Endpoint&) const = default;
};

struct Role {
  bool is_server = false;
  int index = 0;  // among the servers, or among the trainers
  int num_trainers = 1;
  std::vector<Endpoint> servers;
};

using Environment = std::function<std::optional<std::string>(const std::string&)>;
std::optional<std::string> process_environment(const std::string& name);

// nullopt when neither a list of servers nor the role of a server is set. Throws ConfigError naming the variable that
// is missing or wrong.
std::optional<Role> role_from(const Environment& get = process_environment);

// The variables of one process of a job on one host: trainers first, as rank 0 tells the result, then servers.
struct LocalJob {
  int num_trainers = 1;
  std::vector<int> server_ports;
};
std::vector<std::pair<std::string, std::string>> role_environment(const LocalJob& job, int rank);

}  // namespace assay::ps
