#include "engine/precision/loss_scaler.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace assay {

namespace {

// A dynamic scale of 65536 needs as many to arrive at 1.
constexpr int64_t kMaxOverflowsInARow = 16;
constexpr double kSmallestScale = 1;
constexpr double kLargestScale = 16777216;  // 2^24: a float32 loss times more than this loses nothing that float16 has

}  // namespace

LossScaler::LossScaler(const Options& options) : options_(options), scale_(options.initial) {
  const auto refuse = [](const char* key, double value, const char* rule) {
    throw ConfigError(fmt::format("Engine.mix_precision.{} {}: must be {}", key, value, rule));
  };
  if (!(options.initial >= kSmallestScale)) refuse("scale_loss", options.initial, "at least 1");
  if (!(options.growth > 1)) refuse("incr_ratio", options.growth, "above 1");
  if (!(options.backoff > 0 && options.backoff < 1)) refuse("decr_ratio", options.backoff, "between 0 and 1");
}

void LossScaler::update(bool found_inf) {
  if (!found_inf) {
    bad_steps_ = 0;
    if (++good_steps_ >= options_.growth_interval && options_.dynamic) {
      scale_ = std::min(scale_ * options_.growth, std::max(kLargestScale, options_.initial));
      good_steps_ = 0;
    }
    return;
  }
  good_steps_ = 0;
  ++bad_steps_;
  if (!options_.dynamic) {
    if (bad_steps_ >= kMaxOverflowsInARow) {
      throw NonFiniteError(
          fmt::format("gradients overflowed in {} steps in a row with the static loss scale {:g}; set a smaller "
                      "Engine.mix_precision.scale_loss, or use_dynamic_loss_scaling",
                      bad_steps_, scale_));
    }
    return;
  }
  if (bad_steps_ % options_.backoff_interval != 0) return;
  if (scale_ <= kSmallestScale) {
    throw NonFiniteError("gradients or loss are not finite even at loss scale 1");
  }
  scale_ = std::max(scale_ * options_.backoff, kSmallestScale);
}

NamedTensors LossScaler::state() const {
  return {{"scaler.scale", torch::tensor(scale_, torch::kDouble)},
          {"scaler.good_steps", torch::tensor(good_steps_, torch::kLong)},
          {"scaler.bad_steps", torch::tensor(bad_steps_, torch::kLong)}};
}

void LossScaler::load_state(const std::map<std::string, torch::Tensor>& saved) {
  const std::vector<torch::Tensor> found = find_state(LossScaler::state(), saved);
  const auto scale = found[0].item<double>();
  if (!(scale >= kSmallestScale)) throw DataError(fmt::format("scaler.scale is {}, must be at least 1", scale));
  scale_ = scale;
  good_steps_ = found[1].item<int64_t>();
  bad_steps_ = found[2].item<int64_t>();
}

}  // namespace assay
