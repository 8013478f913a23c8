// assay probe: what a host says about itself to the preflight of a run elsewhere; not for people. See
// preflight/probe.h.
#include "preflight/probe.h"
#include "command.h"

namespace assay {

Command probe_command() {
  auto question = std::make_shared<std::string>();
  return {.name = "probe",
          .summary = "Answers the questions of a preflight",
          .examples = "",
          .options = {{.names = "question",
                       .value = question.get(),
                       .help = "A JSON object, see preflight/probe.h",
                       .required = true}},
          .run =
              [question](Context& context) {
                context.console.print(to_line(answer_probe(parse_json(*question, "probe"))) + "\n");
              },
          .hidden = true};
}

}  // namespace assay
