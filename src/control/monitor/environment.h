// What a machine of a run is: host, addresses, kernel, processor, memory, drivers, libraries, our own version and
// hash. What cannot be found is null, never 0.
#pragma once

#include "base/json.h"

namespace assay {

// {"host": {...}, "processor": {...}, "memory": {...}, "drivers": {...}, "libraries": {...}, "assay": {...}}
Json describe_environment();

}  // namespace assay
