// How FlagPerf starts the training script of a case, as the `entry` of ours (plan/entry.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "import/flagperf/tree.h"

namespace assay {

struct FlagperfEntry {
  std::vector<std::string> argv;
  std::map<std::string, std::string> files;  // that the command needs beside the case file
  std::string missing;                       // what a person has to complete; "" when nothing
};

// The script gets the effective configuration of assay: a small file of Python takes the vendor's own file, which may
// hold objects that no YAML can, and puts the values that assay has checked over it. `base` are the values of the
// case's own _base.py, which the script has already.
FlagperfEntry flagperf_entry(const FlagperfTree& tree, const FlagperfCase& found, const Json& base);

}  // namespace assay
