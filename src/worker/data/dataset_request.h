// What a data set may know of the run that asks for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "config/worker_config.h"

namespace assay {

struct DatasetRequest {
  const WorkerConfig& config;
  std::string part;  // "Train", "Eval" or "Test"
  uint64_t seed = 0;

  // `input_dir` of the section, else the folder of the case's data; `contents` says in the error what belongs in it.
  std::filesystem::path folder(Reader& section, const std::string& contents) const;
  // The case says which bytes it was measured on; in the closed division throws DataError when a file has others.
  void check_files(const std::vector<std::filesystem::path>& files) const;
};

}  // namespace assay
