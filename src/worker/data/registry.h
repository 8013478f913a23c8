// Every kind of data set of the product, by name: what Data.Train.dataset.name may be. Adding one is one line in
// registry.cpp (docs/extend/add-a-data-set.md).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/dataset_request.h"

namespace assay {

struct DatasetEntry {
  std::string name;
  std::string summary;  // one sentence
  // Reads the section dataset (except its name), checks it, finishes the reader, checks the files and opens them.
  std::function<std::shared_ptr<const Dataset>(const DatasetRequest& request, Reader& section)> make;
};

const std::vector<DatasetEntry>& datasets();

// The data set that the section names; idx_images when it names none. Throws ConfigError with the nearest name.
std::shared_ptr<const Dataset> make_dataset(const DatasetRequest& request, Reader& section,
                                            const std::vector<DatasetEntry>& known = datasets());

}  // namespace assay
