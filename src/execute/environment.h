// What the machine of a run is: host, kernel, processor, memory, our own version. What cannot be found is null, never
// 0.
#pragma once

#include "base/json.h"

namespace assay {

// {"host": {...}, "processor": {...}, "memory": {...}, "assay": {...}}
Json describe_environment();

}  // namespace assay
