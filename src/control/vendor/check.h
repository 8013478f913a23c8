// Holding a vendor's folder against everything that a campaign will ask of it, before one runs. All problems at once.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"

namespace assay {

struct VendorCheck {
  std::string vendor;
  std::string check;  // "vendor.yaml", "environment", "setup", "resnet/config_A100x1x8", "plugin"
  bool passed = false;
  std::vector<std::string> problems;  // each "FILE:LINE: KEY ..."; of a check that passed: warnings
};

// `plugins` is the folder of built plugin libraries. Throws ConfigError when there is no such vendor.
std::vector<VendorCheck> check_vendor(const fs::path& home, const std::string& vendor, const fs::path& plugins);

Json to_json(const VendorCheck& check);

}  // namespace assay
