// Records of programs that write logs instead: what the dialects of record/ read, and what the patterns of the case
// find (record/log_pattern.h). Knows the folder of one step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "record/log_pattern.h"

namespace assay {

// The log that is read: that of rank 0.
std::string extracted_log();

// Writes the records of rank 0 of a step from its log, unless the program wrote them itself. The log goes on over
// attempts: `log_from` is its size when this one began. What should be a number and is not ("80.83.2%") is left out,
// and a message record says so. Returns how many records there are now.
size_t extract_records(const std::filesystem::path& step_folder, const std::vector<LogPattern>& patterns,
                       int64_t log_from = 0);

// Before another attempt: records that extract_records wrote of the one before it go; those of the program stay.
void discard_extracted(const std::filesystem::path& step_folder);

}  // namespace assay
