// Where prepared data sets lie: one folder for all, in it a folder a data set. See docs/guide/data.md.
#pragma once

#include <string>

#include "base/files.h"

namespace assay {

// $ASSAY_DATA, else $XDG_DATA_HOME/assay/data, else ~/.local/share/assay/data; absolute. Throws UsageError when the
// environment names none of them.
fs::path data_home();
// Where a data set lies: prepared in data_home(), or else as Debian's package of that name installs it, ready to read
// (/usr/share/datasets); when there is neither, where it would be prepared.
fs::path find_data(const std::string& name);

}  // namespace assay
