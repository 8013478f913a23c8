// Which operator computes in which precision inside an autocast scope on the CPU. libtorch's own choice for bfloat16 is
// changed by lists of operator names; float16, which CPUs do not compute in, is emulated: tensors are float16, every
// operator's inputs and outputs are rounded to it, and the operator itself computes in float32, forward and backward.
//
// A choice is registered with libtorch's dispatcher and so holds for the whole process while the object lives; outside
// autocast scopes it changes nothing. Not thread-safe.
#pragma once

#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

namespace torch {
class Library;
}

namespace assay {

class OperatorPrecision {
 public:
  struct Options {
    torch::ScalarType dtype = torch::kBFloat16;  // or kHalf: emulated
    std::vector<std::string> black_list = {};    // run in float32
    std::vector<std::string> white_list = {};    // run in dtype
  };
  // Names are libtorch's ("softmax", "aten::layer_norm"), or Paddle's for the operators that FleetX's configurations
  // list ("reduce_sum"). Throws ConfigError, with the nearest name, for one that does not exist, that cannot be
  // changed, or that is in both lists.
  explicit OperatorPrecision(const Options& options);
  ~OperatorPrecision();
  OperatorPrecision(const OperatorPrecision&) = delete;
  OperatorPrecision& operator=(const OperatorPrecision&) = delete;

  // Those of `listed`, names as in the options, that have not run in an autocast scope so far. Every operator takes a
  // lock until it is asked, so once, soon.
  std::vector<std::string> end_watch(const std::vector<std::string>& listed);

 private:
  std::unique_ptr<torch::Library> library_;
};

// Forward passes inside it compute in `dtype` where that is safe. Weights stay what they are.
class AutocastScope {
 public:
  explicit AutocastScope(torch::ScalarType dtype);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;
};

}  // namespace assay
