// All reports of a run, beside its evidence.
#pragma once

#include <filesystem>

#include "report/run_view.h"

namespace assay {

// Writes report.html, report.md, junit.xml and, last, result.json: where that file is, the others are complete. Each is
// replaced whole. Throws InfrastructureError.
void write_reports(const RunView& run, const std::filesystem::path& folder);

}  // namespace assay
