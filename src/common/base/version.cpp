#include "base/version.h"

#include "assay_version.h"

namespace assay {

std::string version() { return ASSAY_VERSION; }
std::string commit() { return ASSAY_COMMIT; }

}  // namespace assay
