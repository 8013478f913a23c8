// The launchers there are.
#pragma once

#include <string>
#include <vector>

#include "launch/launcher_kind.h"

namespace assay {

const std::vector<const LauncherKind*>& launchers();
std::vector<std::string> launcher_names();
// Throws DataError that lists those there are.
const LauncherKind& launcher_named(const std::string& name);

}  // namespace assay
