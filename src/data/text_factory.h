// Data sets of texts from their section of the configuration.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/worker_config.h"
#include "data/dataset.h"

namespace assay {

struct TextDatasetRequest {
  const WorkerConfig& config;
  const std::string& part;  // "Train", "Eval" or "Test"
  uint64_t seed = 0;
  // Throws when a file is not the one that the case declares.
  std::function<void(const std::vector<std::filesystem::path>&)> check_files;
};

// Each reads its whole section; docs/data.md lists the keys. Throws ConfigError or DataError.
std::shared_ptr<const Dataset> make_gpt_dataset(const TextDatasetRequest& request, Reader& section);
std::shared_ptr<const Dataset> make_text_classification(const TextDatasetRequest& request, Reader& section);
std::shared_ptr<const Dataset> make_masked_language(const TextDatasetRequest& request, Reader& section);

}  // namespace assay
