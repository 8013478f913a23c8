// A run as Markdown, for a README or a pull request: verdicts, steps, and the results of cases in FlagPerf's columns.
#pragma once

#include <string>

#include "report/run_view.h"

namespace assay {

std::string render_markdown(const RunView& run);
// Only the table of case results: config | precision | fix_hp | e2e_time | p_whole | p_train | p_core | acc | mem |
// MFU.
std::string markdown_case_table(const std::vector<Result>& case_results);

}  // namespace assay
