// assay relay: carries the files of a job to a controller on another host (launch/multi_node/relay.h). Hidden:
// launchers start it.
#include <unistd.h>

#include <memory>

#include "base/files.h"
#include "command.h"
#include "launch/multi_node/relay.h"

namespace assay {

Command relay_command() {
  struct Options {
    std::string folder;
    int node = 0;
  };
  auto options = std::make_shared<Options>();
  return {
      .name = "relay",
      .summary = "Carry the files of a job to a controller that is elsewhere",
      .examples = "",
      .options =
          {{.names = "folder",
            .value = &options->folder,
            .help = "The step's folder, with job.node<I>.json",
            .required = true},
           {.names = "--node", .value = &options->node, .help = "Which node of the job", .required = true, .min = 0}},
      .run =
          [options](Context&) { run_relay(fs::absolute(options->folder), options->node, STDIN_FILENO, STDOUT_FILENO); },
      .hidden = true};
}

}  // namespace assay
