// FlagPerf's configuration as ours: cases/, vendors/ and campaign.yaml, with a list of all that could not be read and
// of every vendor that changes what its case does not allow to be changed. Such changes are written as they are: the
// closed division refuses them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "import/flagperf/tree.h"

namespace assay {

// A vendor's value for a name that is not in mutable_params.
struct FlagperfOverride {
  std::string vendor;
  std::string case_name;  // ours
  std::string config;     // "config_A100x1x8"
  std::string key;        // as in our files
  std::string file;       // where the vendor sets it
  int line = 0;
  std::string base;   // for people: the case's value, or why it is not known
  std::string value;  // the vendor's
  Json base_value;    // null when not known
  Json vendor_value;
  std::string base_place;  // "training/.../_base.py:12"; empty when the case does not have it
};
Json to_json(const FlagperfOverride& change);
Json to_json(const PythonIssue& issue);

struct FlagperfImport {
  std::map<std::string, std::string> files;  // relative path -> content
  std::vector<std::string> cases;            // ours, that were written
  std::vector<std::string> vendors;
  std::vector<FlagperfOverride> overrides;
  std::vector<PythonIssue> not_read;  // something is missing in what was written
  std::vector<PythonIssue> notes;     // nothing is missing, but somebody should know
};

FlagperfImport import_flagperf(const FlagperfTree& tree);

// All files or none. Throws UsageError naming those that exist, unless `force`.
void write_import(const FlagperfImport& import, const fs::path& output, bool force);

}  // namespace assay
