// How much worse a figure may become before a comparison fails: thresholds.yaml,
//
//   default:            # every system
//     p_train: 5        # percent
//   A100:               # a system, a host, a hardware or a vendor: its figures replace or add to the default's
//     p_train: 2
//     e2e_time: 10
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "results/result.h"

namespace assay {

inline constexpr double kDefaultThresholdPercent = 5;

class Thresholds {
 public:
  Thresholds() = default;  // kDefaultThresholdPercent for every figure
  // Throws ConfigError naming file, line and key.
  static Thresholds read(const std::filesystem::path& file);

  // In percent, for a row of this system; nullopt: the figure is not judged. The most special section that names the
  // figure decides: system, then host, hardware, vendor, and at last `default`.
  std::optional<double> percent(const Result& row, const std::string& figure) const;

 private:
  bool from_file_ = false;
  std::map<std::string, std::map<std::string, double>> sections_;
};

}  // namespace assay
