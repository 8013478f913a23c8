// The precisions that a device's peak may be told for, by a vendor's vendor.yaml and by its plugin alike.
#pragma once

#include <string>
#include <vector>

namespace assay {

inline const std::vector<std::string>& peak_precisions() {
  static const std::vector<std::string> kNames = {"float64", "float32", "tfloat32", "bfloat16", "float16", "int8"};
  return kNames;
}

}  // namespace assay
