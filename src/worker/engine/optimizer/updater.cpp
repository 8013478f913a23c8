#include "engine/optimizer/updater.h"

namespace assay {

Optimizer::Outcome Updater::step(const Update& update) {
  Update unscaled = update;
  unscaled.gradient_scale = loss_scale();
  unscaled.skip_non_finite = may_skip();
  const Outcome outcome = parts_.optimizer->step(unscaled);
  if (parts_.scaler) parts_.scaler->update(outcome.skipped);
  if (parts_.average && !outcome.skipped) parts_.average->update(num_updates());
  return outcome;
}

NamedTensors Updater::state() const {
  NamedTensors all = parts_.optimizer->state();
  const auto add = [&](const NamedTensors& more) { all.insert(all.end(), more.begin(), more.end()); };
  if (parts_.scaler) add(parts_.scaler->state());
  if (parts_.average) add(parts_.average->state());
  return all;
}

void Updater::load_state(const std::map<std::string, torch::Tensor>& saved) {
  // All or nothing: what any part would refuse is refused before the first one changes.
  find_state(state(), saved);
  parts_.optimizer->load_state(saved);
  if (parts_.scaler) parts_.scaler->load_state(saved);
  if (parts_.average) parts_.average->load_state(saved);
}

std::unique_ptr<WeightSwap> Updater::use_average() const {
  return parts_.average && num_updates() > 0 ? parts_.average->use() : nullptr;
}

void Updater::adopt_average() const {
  if (parts_.average && num_updates() > 0) parts_.average->adopt();
}

}  // namespace assay
