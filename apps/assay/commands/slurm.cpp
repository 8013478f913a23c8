// assay slurm: what a job of Slurm runs on its nodes; not for people. See launch/slurm_place.h.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"
#include "context.h"
#include "launch/device_addresses.h"
#include "launch/port.h"
#include "launch/slurm_place.h"

namespace assay {

namespace {

// Becomes the supervisor: it is this process that Slurm watches and signals.
[[noreturn]] void become_supervisor(const std::string& folder, int node) {
  const std::string self = (program_folder() / "assay").string();
  const std::string number = std::to_string(node);
  const char* argv[] = {self.c_str(), "supervise", folder.c_str(), "--node", number.c_str(), "--foreground", nullptr};
  ::execv(self.c_str(), const_cast<char* const*>(argv));
  throw InfrastructureError(fmt::format("cannot start {}: {}", self, std::strerror(errno)));
}

}  // namespace

void add_slurm_command(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("slurm", "What a job of Slurm runs on its nodes")->group("");
  command->require_subcommand(1);
  auto folder = std::make_shared<std::string>();
  auto* place =
      command->add_subcommand("place", "On the first node: writes nodes, address and port into the job files");
  place->add_option("folder", *folder, "The step's folder")->required();
  place->callback([folder] { place_slurm_job(*folder, process_environment); });
  auto* supervise = command->add_subcommand("supervise", "On every node: becomes its supervisor");
  supervise->add_option("folder", *folder, "The step's folder")->required();
  supervise->callback([folder] { become_supervisor(*folder, take_slurm_node(*folder, process_environment)); });
  auto count = std::make_shared<int>(1);
  auto* ports = command->add_subcommand("ports", "Prints the node's number and ports that are free on it");
  ports->add_option("count", *count, "How many")->required()->check(CLI::Range(1, 10000));
  ports->callback([count, &context] {
    std::string line = process_environment("SLURM_NODEID");
    for (int i = 0; i < *count; ++i) line += fmt::format(" {}", free_port());
    context.console.print(line + "\n");
  });
  auto* addresses = command->add_subcommand("addresses", "Prints the node's number and the addresses of its devices");
  addresses->callback([&context] {
    context.console.print(fmt::format("{} {}\n", process_environment("SLURM_NODEID"),
                                      to_line(device_addresses_json(read_device_addresses().addresses))));
  });
}

}  // namespace assay
