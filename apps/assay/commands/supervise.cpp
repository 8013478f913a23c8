// assay supervise, assay free-ports, assay device-addresses: what a launcher asks of the program on a host. Hidden:
// people use `assay run`.
#include <fmt/format.h>

#include "base/files.h"
#include "command.h"
#include "launch/host/device_addresses.h"
#include "launch/host/port.h"
#include "launch/host/supervisor.h"

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

Command supervise_command() {
  auto options = std::make_shared<SuperviseOptions>();
  return {.name = "supervise",
          .summary = "Run the ranks of one node of a job until they end",
          .examples = "",
          .options = {{.names = "folder",
                       .value = &options->folder,
                       .help = "The step's folder, with job.node<I>.json",
                       .required = true},
                      {.names = "--node",
                       .value = &options->node,
                       .help = "Which node of the job this is",
                       .required = true,
                       .min = 0},
                      {.names = "--foreground",
                       .value = &options->foreground,
                       .help = "Stay in this process, for a batch system that watches it"}},
          .run = [options](Context& context) { run_supervise(*options, context); },
          .hidden = true};
}

Command free_ports_command() {
  auto count = std::make_shared<int>(1);
  return {.name = "free-ports",
          .summary = "TCP ports that are free on this host, one per line",
          .examples = "",
          .options = {{.names = "count", .value = count.get(), .help = "How many", .min = 1, .max = 10'000}},
          .run =
              [count](Context& context) {
                for (int i = 0; i < *count; ++i) context.console.print(fmt::format("{}\n", free_port()));
              },
          .hidden = true};
}

Command device_addresses_command() {
  return {.name = "device-addresses",
          .summary = "Addresses of devices that have a network of their own",
          .examples = "",
          .run =
              [](Context& context) {
                const DeviceAddresses found = read_device_addresses();
                for (const std::string& line : found.ignored) context.console.warn("passed over: " + line);
                context.console.print(to_line(device_addresses_json(found.addresses)) + "\n");
              },
          .hidden = true};
}

}  // namespace assay
