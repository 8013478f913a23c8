// The patterns of a case (record/log_pattern.h), read from its configuration with the place of every mistake.
#pragma once

#include <vector>

#include "config/value.h"
#include "record/log_pattern.h"

namespace assay {

// `list` is `config.patterns` of a case. Throws ConfigError with file, line and column of the key that is wrong.
std::vector<LogPattern> read_log_patterns(const Value& list);

}  // namespace assay
