// Records of programs that write logs instead: what the dialects of record/ read, and what patterns of the case find.
//
// A pattern is {"match": REGEX, "names": [NAME, ...], "kind": "metrics" | "result"}: one name for every group of the
// expression (ECMAScript). In metrics the names "step" and "epoch" place the record, all others are metrics. A result
// is what the run achieved, with the keys of record/keys.h; the last line that says a thing counts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"

namespace assay {

// Throws ConfigError naming the pattern.
void check_patterns(const std::vector<Json>& patterns);

// The log that is read: that of rank 0.
std::string harvested_log();

// Writes records.jsonl of a step from its log, unless the program wrote one itself. The log goes on over attempts:
// `log_from` is its size when this one began. Numbers that are not ("80.83.2%") are left out, and a message record says
// so. Returns how many records there are now.
size_t harvest_records(const std::filesystem::path& step_folder, const std::vector<Json>& patterns,
                       int64_t log_from = 0);

// Before another attempt: records that harvest_records wrote of the one before it go; those of the program stay.
void discard_harvest(const std::filesystem::path& step_folder);

}  // namespace assay
