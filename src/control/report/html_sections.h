// The sections of report.html, each a piece of markup with everything foreign escaped. "" when there is nothing to
// show.
#pragma once

#include <string>

#include "report/run_view.h"

namespace assay {

// "pass", "fail", "invalid", "error", "skipped": classes of the style sheet.
std::string outcome_class(Outcome outcome);
// The symbols that the sections use; once in a page.
std::string html_symbols();

std::string html_header(const RunView& run);
std::string html_headline(const RunView& run);
std::string html_verdicts(const RunView& run);
std::string html_steps(const RunView& run);
std::string html_logs(const RunView& run);
std::string html_results(const RunView& run);
std::string html_environment(const RunView& run);
std::string html_parameters(const RunView& run);

}  // namespace assay
