// report.html: the run as one self-contained page. No network, no fonts, no libraries: style, script and data are in
// the file, and its content security policy forbids everything else. Charts are drawn without the script too.
#pragma once

#include <string>

#include "report/run_view.h"

namespace assay {

std::string render_html(const RunView& run);

}  // namespace assay
