// What the options of all transformers share, and how they are checked.
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

// Which activations are computed again in the backward pass instead of kept. The scores of attention always are.
enum class Recomputes { Nothing, Attention, Blocks };

// FleetX's use_recompute and recompute_granularity.
inline Recomputes recompute_option(Reader& section) {
  const bool use = section.get_bool("use_recompute", false);
  const std::string what = section.get_choice("recompute_granularity", {"full", "full_attn", "core_attn"}, "full");
  if (!use || what == "core_attn") return Recomputes::Nothing;
  return what == "full" ? Recomputes::Blocks : Recomputes::Attention;
}

}  // namespace assay
