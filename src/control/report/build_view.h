// The view of a run, read from its folder. Works while the run is going on, and after a crash.
#pragma once

#include <filesystem>

#include "report/run_view.h"

namespace assay {

// Throws DataError when the folder is not a run or is damaged.
RunView build_view(const std::filesystem::path& run_folder);

}  // namespace assay
