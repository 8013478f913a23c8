// A run on a terminal: steps, verdicts, the figures people ask for first, and the last words of what broke.
#pragma once

#include <cstddef>
#include <string>

#include "base/console.h"
#include "report/run_view.h"

namespace assay {

Colour outcome_colour(Outcome outcome);

// `width` is the terminal's, in columns; 0: no limit.
std::string render_terminal(const RunView& run, bool colours, size_t width);

}  // namespace assay
