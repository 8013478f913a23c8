#include "launch/multi_node/hosts.h"

#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "launch/host/rank_environment.h"
#include "launch/multi_node/hosts_step.h"

namespace assay {

namespace {

constexpr size_t kMostAtOnce = 128;
constexpr size_t kMostTold = 5;  // of the failures of many hosts

void check_request(const LaunchRequest& request) {
  if (request.placement.nodes.empty() || request.placement.nodes.size() != static_cast<size_t>(request.ranks.nnodes)) {
    throw ConfigError(fmt::format("a job of {} nodes needs as many hosts, and has {}", request.ranks.nnodes,
                                  request.placement.nodes.size()));
  }
  if (request.ranks.num_servers > 0 && request.ranks.nnodes > 1) {
    throw ConfigError("parameter servers are started on one host only");
  }
}

using Sessions = std::vector<std::unique_ptr<NodeSession>>;

// What every node must know before any is started.
std::map<std::string, std::string> shared_environment(const LaunchRequest& request, const std::string& master,
                                                      Sessions& sessions) {
  std::map<std::string, std::string> env = request.command.env;
  env.emplace("MASTER_ADDR", master);
  if (request.ranks.world_size() > 1 && !env.count("MASTER_PORT")) {
    env["MASTER_PORT"] = std::to_string(sessions[0]->free_ports(1).at(0));
  }
  if (needs_port_per_rank(request) && !env.count(kPaddleEndpoints)) {
    std::vector<std::vector<int>> ports(sessions.size());
    for_all(sessions.size(), [&](size_t i) { ports[i] = sessions[i]->free_ports(request.ranks.nproc); });
    env[kPaddleEndpoints] = paddle_endpoints(request, ports);
  }
  return env;
}

LaunchRequest job_of_node(const LaunchRequest& request, size_t node, const NodeSession& session,
                          const std::map<std::string, std::string>& env) {
  LaunchRequest job = request;
  job.ranks.node_rank = static_cast<int>(node);
  job.command.env = env;
  job.command.cwd = session.there(request.command.cwd);
  job.folder = session.there(request.folder);
  return job;
}

// What is wrong with the request is wrong on every host, and trying again does not help.
void rethrow_if_ours(const std::exception_ptr& error) {
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    if (known.kind() != ErrorKind::Infrastructure) throw;
  } catch (const std::exception&) {
  }
}

// Supervisors and relays work elsewhere: nothing may depend on this process' folder.
LaunchRequest with_absolute_paths(LaunchRequest request) {
  request.command.cwd = std::filesystem::absolute(request.command.cwd).lexically_normal();
  request.folder = std::filesystem::absolute(request.folder).lexically_normal();
  return request;
}

Sessions open_sessions(Transport& transport, const LaunchRequest& request) {
  Sessions sessions;
  for (int node = 0; node < request.ranks.nnodes; ++node) sessions.push_back(transport.open(request, node));
  return sessions;
}

}  // namespace

void for_all(size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::vector<std::string> failures(count);
  std::vector<std::exception_ptr> errors(count);
  const auto worker = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (const std::exception& error) {
        failures[i] = error.what();
        errors[i] = std::current_exception();
      }
    }
  };
  if (count == 1) {
    worker();
  } else {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < std::min(count, kMostAtOnce); ++i) threads.emplace_back(worker);
  }
  std::erase_if(failures, [](const std::string& text) { return text.empty(); });
  if (failures.empty()) return;
  for (const std::exception_ptr& error : errors) rethrow_if_ours(error);
  const size_t num_failed = failures.size();
  if (num_failed > kMostTold) failures.resize(kMostTold);
  std::string text = join(failures, "; ");
  if (num_failed > kMostTold) text += fmt::format("; and {} more hosts", num_failed - kMostTold);
  throw InfrastructureError(text);
}

std::unique_ptr<RunningStep> HostsLauncher::start(const LaunchRequest& asked) {
  check_request(asked);
  LaunchRequest request = with_absolute_paths(asked);
  Sessions sessions = open_sessions(*transport_, request);
  for_all(sessions.size(), [&](size_t i) { sessions[i]->prepare(); });
  if (needs_rank_table(request)) {
    for_all(sessions.size(),
            [&](size_t i) { request.placement.nodes[i].device_addresses = sessions[i]->device_addresses(); });
  }
  const auto env = shared_environment(request, transport_->master_address(request), sessions);
  std::vector<NodeSession*> nodes;
  for (const auto& session : sessions) nodes.push_back(session.get());
  // From here on it owns what runs: an error below stops every node again.
  auto step = std::make_unique<HostsStep>(request, std::move(sessions));
  for_all(nodes.size(), [&](size_t i) { nodes[i]->start(job_of_node(request, i, *nodes[i], env)); });
  return step;
}

std::unique_ptr<RunningStep> HostsLauncher::attach(const LaunchRequest& asked) {
  check_request(asked);
  const LaunchRequest request = with_absolute_paths(asked);
  Sessions sessions = open_sessions(*transport_, request);
  std::vector<char> found(sessions.size(), 0);
  std::vector<NodeSession*> nodes;
  for (const auto& session : sessions) nodes.push_back(session.get());
  for_all(nodes.size(),
          [&](size_t i) { found[i] = nodes[i]->attach(job_of_node(request, i, *nodes[i], request.command.env)); });
  if (std::none_of(found.begin(), found.end(), [](char here) { return here != 0; })) return nullptr;
  auto step = std::make_unique<HostsStep>(request, std::move(sessions));
  if (step->can_go_on()) return step;
  return nullptr;  // and what is left of it is stopped
}

}  // namespace assay
