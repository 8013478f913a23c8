// The data sets that can be prepared. Each has one file in sets/; the list is in catalogue.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "datasets/progress.h"
#include "datasets/source.h"

namespace assay {

// What a conversion works with. It writes into `output` and nowhere else, and returns counts for the manifest.
struct Conversion {
  std::vector<fs::path> inputs;  // one folder a source, in its order
  fs::path output;
  fs::path work;  // for temporary files
  ProgressReport report;
};

struct DataSet {
  std::string name;
  std::string summary;
  std::string licence;  // of the data
  std::string layout;   // see docs/guide/data.md
  std::vector<Source> sources;
  int revision = 1;  // raised when the conversion writes other files than before
  std::function<Json(const Conversion&)> convert;
};

const std::vector<DataSet>& data_sets();
const DataSet* find_data_set(const std::string& name);   // nullptr when there is none
const DataSet& data_set_named(const std::string& name);  // throws UsageError with the nearest name

}  // namespace assay
