// The commands of list.inc.
#include "command.h"

namespace assay {

#define ASSAY_COMMAND(name) Command name##_command();
#include "list.inc"
#undef ASSAY_COMMAND

std::vector<Command> commands() {
  return {
#define ASSAY_COMMAND(name) name##_command(),
#include "list.inc"
#undef ASSAY_COMMAND
  };
}

}  // namespace assay
