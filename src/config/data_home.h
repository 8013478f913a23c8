// Where prepared data sets lie: one folder for all, in it a folder a data set. See docs/data.md.
#pragma once

#include <string>

#include "base/files.h"

namespace assay {

// $ASSAY_DATA, else $XDG_DATA_HOME/assay/data, else ~/.local/share/assay/data; absolute. Throws UsageError when the
// environment names none of them.
fs::path data_home();

}  // namespace assay
