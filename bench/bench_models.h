// The models that bench/train compares, with the optimizer both sides use. Adding one: a line in bench_models.cpp and
// its plain PyTorch counterpart in bench/peer_models.py.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/module.h"

namespace assay {

struct BenchModel {
  std::string name;
  Optimizer::Options optimizer;
  double learning_rate = 1e-3;
  std::function<std::unique_ptr<Module>()> make;
};

const BenchModel& bench_model(const std::string& name);  // throws UsageError

}  // namespace assay
