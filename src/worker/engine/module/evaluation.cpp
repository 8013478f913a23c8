#include "engine/module/evaluation.h"

namespace assay {

void EvalCollector::add(const EvalStep& step) {
  sums_.loss += step.loss.item<double>() * static_cast<double>(step.num_samples);
  sums_.num_samples += step.num_samples;
  for (const auto& [name, value] : step.sums) sums_.sums[name] += value;
  for (const auto& [name, value] : step.values) values_[name].push_back(value);
}

EvalSums EvalCollector::sums() const {
  EvalSums all = sums_;
  for (const auto& [name, parts] : values_) all.values[name] = torch::cat(parts);
  return all;
}

}  // namespace assay
