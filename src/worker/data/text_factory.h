// Data sets of texts from their section of the configuration.
#pragma once

#include <memory>

#include "data/dataset.h"
#include "data/dataset_request.h"

namespace assay {

// Each reads its whole section; docs/guide/data.md lists the keys. Throws ConfigError or DataError.
std::shared_ptr<const Dataset> make_blank_infilling(const DatasetRequest& request, Reader& section);
std::shared_ptr<const Dataset> make_gpt_dataset(const DatasetRequest& request, Reader& section);
std::shared_ptr<const Dataset> make_text_classification(const DatasetRequest& request, Reader& section);
std::shared_ptr<const Dataset> make_masked_language(const DatasetRequest& request, Reader& section);

}  // namespace assay
