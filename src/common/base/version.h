// The version and the commit this program was built from.
#pragma once

#include <string>

namespace assay {

std::string version();  // "0.1.0"
std::string commit();   // "1a2b3c4d5e6f", with "-dirty" when the tree had changes; "unknown" outside a checkout

}  // namespace assay
