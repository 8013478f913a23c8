// One `a.b.0.c=value` of the command line as a layer.
#pragma once

#include <string>

#include "config/case.h"
#include "config/value.h"

namespace assay {

// The layer that the setting stands for. The value is YAML; `null` sets null. A path through a list gives the whole
// list with one item changed, as it is in `effective`. Throws UsageError for text that is not an assignment,
// ConfigError for an index outside its list.
Value layer_of(const Setting& setting, const Value& effective);

}  // namespace assay
