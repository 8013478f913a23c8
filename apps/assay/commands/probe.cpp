// assay probe: what a host says about itself to the preflight of a run elsewhere; not for people. See launch/probe.h.
#include "launch/probe.h"
#include "context.h"

namespace assay {

void add_probe_command(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("probe", "Answers the questions of a preflight")->group("");
  auto question = std::make_shared<std::string>();
  command->add_option("question", *question, "A JSON object, see launch/probe.h")->required();
  command->callback(
      [question, &context] { context.console.print(to_line(answer_probe(parse_json(*question, "probe"))) + "\n"); });
}

}  // namespace assay
