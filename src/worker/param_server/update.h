// Update rules of the servers over one row, by the loops that trainers without servers use (kernels/update_kernels.h).
// g gradient, w weight, l rate, d weight decay, t the number of updates of the server, this one included; g' = g + d *
// w:
//   SGD       w -= l * g'
//   Momentum  v = mu * v + g';  w -= l * v
//   Adagrad   s = s + g'^2;  w -= l * g' / (sqrt(s) + eps)
//   Adam      m = b1 * m + (1 - b1) * g';  s = b2 * s + (1 - b2) * g'^2;
//             w -= l * (m / (1 - b1^t)) / (sqrt(s / (1 - b2^t)) + eps)
//   AdamW     w -= l * d * w, then Adam with g
// Rows that a batch does not have stay as they are, moments included.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/update_kernels.h"
#include "param_server/types.h"

namespace assay::ps {

const std::vector<std::string>& update_names();
UpdateRule update_rule(const std::string& name);  // of a checked spec

// What a row has beside its weights.
struct RowParts {
  bool first = false;   // momentum or first moments
  bool second = false;  // squares or second moments
};
RowParts row_parts(const std::string& name);  // of a checked spec

template <typename T>
UpdateFactors<T> row_factors(const UpdateOptions& options, double rate, int64_t num_updates);

}  // namespace assay::ps
