// assay supervise, assay free-ports, assay device-addresses: what a launcher asks of the program on a host. Hidden:
// people use `assay run`.
#include <fmt/format.h>

#include "base/files.h"
#include "context.h"
#include "launch/device_addresses.h"
#include "launch/port.h"
#include "launch/supervisor.h"

namespace assay {

namespace {

struct SuperviseOptions {
  std::string folder;
  int node = 0;
  bool foreground = false;
};

void run_supervise(const SuperviseOptions& options, Context& context) {
  const fs::path folder = fs::absolute(options.folder);
  if (options.foreground) {
    context.exit_code = supervise(folder, options.node, [] {});
  } else {
    supervise_detached(folder, options.node);
  }
}

}  // namespace

void add_supervise_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<SuperviseOptions>();
  auto* command = app.add_subcommand("supervise", "Run the ranks of one node of a job until they end");
  command->group("");
  command->add_option("folder", options->folder, "The step's folder, with job.node<I>.json")->required();
  command->add_option("--node", options->node, "Which node of the job this is")
      ->required()
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--foreground", options->foreground, "Stay in this process, for a batch system that watches it");
  command->callback([options, &context] { run_supervise(*options, context); });

  auto count = std::make_shared<int>(1);
  auto* ports = app.add_subcommand("free-ports", "TCP ports that are free on this host, one a line");
  ports->group("");
  ports->add_option("count", *count, "How many")->check(CLI::Range(1, 10'000));
  ports->callback([count, &context] {
    for (int i = 0; i < *count; ++i) context.console.print(fmt::format("{}\n", free_port()));
  });

  auto* addresses = app.add_subcommand("device-addresses", "Addresses of devices that have a network of their own");
  addresses->group("");
  addresses->callback([&context] {
    const DeviceAddresses found = read_device_addresses();
    for (const std::string& line : found.ignored) context.console.warn("passed over: " + line);
    context.console.print(to_line(device_addresses_json(found.addresses)) + "\n");
  });
}

}  // namespace assay
