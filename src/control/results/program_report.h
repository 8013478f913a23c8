// What a program reported of itself, from the records of its ranks. Knows records and figures; knows no run.
#pragma once

#include <string>
#include <vector>

#include "record/record.h"
#include "results/schema.h"

namespace assay {

// The last of its result records, FINISHED events (FlagPerf) and run summaries (DLLogger), put together.
struct ProgramReport {
  Figures figures = {};
  std::string case_name = {};  // that a result record names
  Json data = {};              // of the last result record, as it is; null: there was none
  Json target = {};
  Json hashes = Json::object();
  bool found = false;
};

// Of the first rank that reported something. Expects records without voided ones (run/evidence.h).
ProgramReport program_report(const std::vector<std::vector<Record>>& ranks);

}  // namespace assay
