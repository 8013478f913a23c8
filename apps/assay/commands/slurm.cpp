// assay slurm: what a job of Slurm runs on its nodes; not for people. See launch/slurm/slurm_place.h.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"
#include "command.h"
#include "launch/host/device_addresses.h"
#include "launch/host/port.h"
#include "launch/slurm/slurm_place.h"

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

Command slurm_command() {
  auto folder = std::make_shared<std::string>();
  auto count = std::make_shared<int>(1);
  const Option folder_option{.names = "folder", .value = folder.get(), .help = "The step's folder", .required = true};
  Command place{.name = "place",
                .summary = "On the first node: writes nodes, address and port into the job files",
                .examples = "",
                .options = {folder_option},
                .run = [folder](Context&) { place_slurm_job(*folder, process_environment); }};
  Command supervise{
      .name = "supervise",
      .summary = "On every node: becomes its supervisor",
      .examples = "",
      .options = {folder_option},
      .run = [folder](Context&) { become_supervisor(*folder, take_slurm_node(*folder, process_environment)); }};
  Command ports{
      .name = "ports",
      .summary = "Prints the node's number and ports that are free on it",
      .examples = "",
      .options =
          {{.names = "count", .value = count.get(), .help = "How many", .required = true, .min = 1, .max = 10'000}},
      .run = [count](Context& context) {
        std::string line = process_environment("SLURM_NODEID");
        for (int i = 0; i < *count; ++i) line += fmt::format(" {}", free_port());
        context.console.print(line + "\n");
      }};
  Command addresses{
      .name = "addresses",
      .summary = "Prints the node's number and the addresses of its devices",
      .examples = "",
      .run = [](Context& context) {
        context.console.print(fmt::format("{} {}\n", process_environment("SLURM_NODEID"),
                                          to_line(device_addresses_json(read_device_addresses().addresses))));
      }};
  return {.name = "slurm",
          .summary = "What a job of Slurm runs on its nodes",
          .examples = "",
          .commands = {std::move(place), std::move(supervise), std::move(ports), std::move(addresses)},
          .hidden = true};
}

}  // namespace assay
