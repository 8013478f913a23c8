// assay relay: carries the files of a job to a controller on another host (launch/relay.h). Hidden: launchers start it.
#include <unistd.h>

#include "base/files.h"
#include "context.h"
#include "launch/relay.h"

namespace assay {

void add_relay_command(CLI::App& app, Context&) {
  struct Options {
    std::string folder;
    int node = 0;
  };
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("relay", "Carry the files of a job to a controller that is elsewhere");
  command->group("");
  command->add_option("folder", options->folder, "The step's folder, with job.node<I>.json")->required();
  command->add_option("--node", options->node, "Which node of the job")->required()->check(CLI::NonNegativeNumber);
  command->callback(
      [options] { run_relay(fs::absolute(options->folder), options->node, STDIN_FILENO, STDOUT_FILENO); });
}

}  // namespace assay
