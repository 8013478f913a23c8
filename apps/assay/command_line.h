// From words to a command that runs: options, help, and errors that name what was meant. The one place that knows the
// library behind it.
#pragma once

#include <string>
#include <vector>

#include "command.h"

namespace assay {

// Parses words[1...], runs the command and returns the exit code. Errors are told on the console of the context.
int run_command_line(const std::vector<Command>& commands, const std::vector<std::string>& words, Context& context);

// What may stand in place of the last of `words`, which follow the program's name: for the completion of shells.
std::vector<std::string> completions(const std::vector<Command>& commands, const Context& context,
                                     std::vector<std::string> words);

}  // namespace assay
