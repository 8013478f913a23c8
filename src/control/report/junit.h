// A run as JUnit XML, for continuous integration: one suite a run, one test a step and one a verdict. Invalid counts as
// an error, and a run that did not pass never looks green, even when nothing was run.
#pragma once

#include <string>

#include "report/run_view.h"

namespace assay {

std::string render_junit(const RunView& run);

}  // namespace assay
