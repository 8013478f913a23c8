// The target of a FlagPerf case: it has no key of its own there, only names such as target_acc1.
#pragma once

#include <string>
#include <string_view>

#include "import/flagperf/python_literals.h"

namespace assay {

// `target`, `target_acc1`, ...: a number under such a name is what a run has to reach.
bool is_target_name(std::string_view name);
// "acc1" of "target_acc1"; "target" of "target".
std::string target_metric(std::string_view name);
// Losses, errors and perplexity are to fall.
bool is_minimized(std::string_view metric);

}  // namespace assay
