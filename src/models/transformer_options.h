// How the transformers check their options.
#pragma once

#include <string>

#include "config/reader.h"

namespace assay {

inline int64_t size_option(Reader& section, const std::string& key, int64_t fallback, int64_t max) {
  const int64_t value = section.get_int(key, fallback);
  if (value < 1 || value > max) section.fail(key, "must be from 1 to " + std::to_string(max));
  return value;
}

inline double share_option(Reader& section, const std::string& key, double fallback) {
  const double value = section.get_double(key, fallback);
  if (!(value >= 0 && value < 1)) section.fail(key, "must be from 0 to below 1");
  return value;
}

}  // namespace assay
