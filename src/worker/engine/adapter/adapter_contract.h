// What every adapter must hold, checked by training a small network with it: for `assay-worker check-plugin` and for
// the tests, which run it over every registered adapter and every plugin that is shipped.
#pragma once

#include <string>
#include <vector>

#include "engine/adapter/adapter.h"

namespace assay {

struct ContractCheck {
  std::string name;  // "hooks_in_order"
  bool passed = false;
  std::string detail;  // what was found, when it failed
};

// Each check by itself: one that throws has failed. The network has 7 parameters; 12 steps and less than a second each.
//   devices              have names, known precisions and positive peaks; none is called cpu
//   hooks_in_order       the four events come once, in the order of adapter.h
//   parameters_kept      names, shapes and values are those of before convert_model
//   gradients            backward gives the gradients of libtorch's own backward to 1e-4, accumulated
//   every_parameter      the optimizer changes every parameter, and forgets gradients when told to
//   losses_finite        and falling, with every rule, in float32
//   lower_precision      the same in bfloat16 at levels O1 and O2
//   loss_scaler          is above 0, falls after an overflow; the weights do not change in that step
//   exact_resume         12 steps, and 6 + a saved state + 6, end with bitwise the same weights
std::vector<ContractCheck> check_adapter(Adapter& adapter);

}  // namespace assay
