// assay-worker serve: one parameter server of a job; and how its trainers find their servers.
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/signals.h"
#include "commands.h"
#include "engine/loop/record_observer.h"
#include "parallel/parameter_server.h"
#include "param_server/server.h"
#include "record/keys.h"

namespace assay {

namespace {

// Of servers that share a host with trainers; the rest is for those and for the system.
constexpr double kMemoryShare = 0.5;

int64_t memory_limit() {
  const auto pages = static_cast<double>(::sysconf(_SC_PHYS_PAGES));
  return static_cast<int64_t>(pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) * kMemoryShare);
}

struct ServerJob {
  ps::Role role;
  ServerJobOptions options;
};

ServerJob server_job(const Job& job) {
  const std::optional<ServerJobOptions> options = read_server_options(job.config());
  if (!options) {
    throw ConfigError(
        "the environment names parameter servers (PADDLE_PSERVERS_IP_PORT_LIST), but Distributed.ps.mode is none: set "
        "it to sync, async or geo");
  }
  if (!job.server_role()) {
    throw ConfigError(fmt::format(
        "Distributed.ps.mode is {}, but the environment names no parameter servers: set PADDLE_PSERVERS_IP_PORT_LIST, "
        "PADDLE_TRAINERS_NUM, TRAINING_ROLE and PADDLE_TRAINER_ID, or POD_IP and PADDLE_PORT",
        name_of(options->mode)));
  }
  return {*job.server_role(), *options};
}

// As many as trainers keep of theirs, and one more: servers save first.
int checkpoints_to_keep(const EngineOptions& options) {
  return static_cast<int>(std::min<int64_t>(options.keep_last.value_or(1'000'000), 1'000'000)) + 1;
}

}  // namespace

std::unique_ptr<ParameterServerStrategy> connect_to_servers(Job& job) {
  const auto [role, options] = server_job(job);
  return std::make_unique<ParameterServerStrategy>(options,
                                                   ps::ClientOptions{.servers = role.servers,
                                                                     .trainer = role.index,
                                                                     .num_trainers = role.num_trainers,
                                                                     .mode = options.mode,
                                                                     .job = job.config().hash,
                                                                     .time_limit_s = options.time_limit_s},
                                                   job.options().seed);
}

void run_serve(Job& job) {
  const auto [role, options] = server_job(job);
  if (!role.is_server) throw ConfigError("environment: TRAINING_ROLE is not PSERVER; a trainer is started with train");
  const ps::Endpoint endpoint = role.servers[static_cast<size_t>(role.index)];
  const auto say = [&](const std::string& text) {
    fmt::print("[server {}] {}\n", role.index, text);
    std::fflush(stdout);
  };
  ps::ServerOptions settings{.endpoint = endpoint, .shard = {}};
  settings.shard = {.server = {role.index, static_cast<int>(role.servers.size())},
                    .num_trainers = role.num_trainers,
                    .mode = options.mode,
                    .job = job.config().hash,
                    .time_limit_s = options.time_limit_s,
                    .checkpoint_folder = job.arguments().output / "servers",
                    .keep_checkpoints = checkpoints_to_keep(job.options()),
                    .max_bytes = memory_limit(),
                    .log = say};
  ps::Server server(settings);
  say(fmt::format("{} for {} trainer{}, {}", endpoint.text(), role.num_trainers, role.num_trainers > 1 ? "s" : "",
                  name_of(options.mode)));
  write_event(job.records(), keys::kServerStart, server.shard().stats());
  const ps::Server::Ending ending = server.run(stop_fd());
  write_event(job.records(), keys::kServerEnd, server.shard().stats());
  if (ending == ps::Server::Ending::Stopped) {
    throw InterruptedError(fmt::format("parameter server {} received a stop signal", role.index));
  }
  say("all trainers have left");
}

}  // namespace assay
