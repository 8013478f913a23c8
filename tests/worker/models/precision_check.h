// A training step of a model in every precision.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include "engine/adapter/adapter.h"

namespace assay {

struct StepFigures {
  double loss;
  double gradient_norm;
};

inline StepFigures figures_in(const PrecisionOptions& options, Module& module, Batch batch) {
  const Precision precision(options);
  precision.convert(module.model());
  module.model().train();
  std::unique_ptr<LowPrecisionWeights> low;
  if (options.low_weights) low = Adapter().model_to_fp16(module.model(), *options.mixed);
  const auto swap = low ? low->use() : nullptr;
  batch = precision.convert(module.pretreating_batch(std::move(batch)));
  torch::Tensor loss;
  {
    const auto scope = precision.autocast();
    loss = module.training_step(batch);
  }
  module.backward(loss * 128.0);  // a loss scale
  double squares = 0;
  for (const auto& item : module.model().named_parameters()) {
    EXPECT_TRUE(item.value().grad().defined()) << item.key();
    squares += item.value().grad().to_dense().to(torch::kDouble).square().sum().item<double>();
  }
  return {loss.item<double>(), std::sqrt(squares)};
}

// The loss in every precision is that of float64, as exactly as the precision allows, and so are the gradients. `make`
// gives the same weights and the same batch every time.
inline void expect_every_precision(const std::function<std::pair<std::unique_ptr<Module>, Batch>()>& make) {
  const auto measure = [&](const PrecisionOptions& options) {
    auto [module, batch] = make();
    return figures_in(options, *module, std::move(batch));
  };
  const StepFigures exact = measure({.dtype = torch::kDouble});
  const auto expect = [&](const PrecisionOptions& options, double tolerance) {
    const StepFigures found = measure(options);
    const std::string name = precision_name(options) + (options.low_weights ? " O2" : "");
    EXPECT_NEAR(found.loss, exact.loss, tolerance * exact.loss) << name;
    EXPECT_NEAR(found.gradient_norm, exact.gradient_norm, 5 * tolerance * exact.gradient_norm) << name;
  };
  expect({}, 1e-5);
  for (const bool low_weights : {false, true}) {
    expect({.mixed = torch::kBFloat16, .low_weights = low_weights}, 0.02);
    expect({.mixed = torch::kHalf, .low_weights = low_weights}, 0.003);
  }
}

}  // namespace assay
