// What processes measured on their parts of an evaluation, as bytes that they can tell each other.
#pragma once

#include <string>
#include <vector>

#include "engine/module.h"

namespace assay {

std::string pack_sums(const EvalSums& sums);
// All together, values one after the other in this order.
EvalSums merge_sums(const std::vector<std::string>& packed);

}  // namespace assay
