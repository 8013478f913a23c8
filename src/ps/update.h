// Update rules of the servers over one row, the same formulas as engine/fused_optimizer.h, which trainers without
// servers use. g gradient, w weight, l rate, d weight decay, t the number of updates of the server, this one included;
// g' = g + d * w:
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

#include "ps/types.h"

namespace assay::ps {

enum class UpdateKind { Sgd, Momentum, Adagrad, Adam, AdamW };

const std::vector<std::string>& update_names();
UpdateKind update_kind(const std::string& name);  // of a checked spec
// What a row has beside its weights: momentum or first moments, squares or second moments.
bool has_first(UpdateKind kind);
bool has_second(UpdateKind kind);

template <typename T>
struct RowFactors {
  T rate, decay, momentum, beta1, beta2, epsilon;
  T rest1, rest2;              // 1 - beta, from double
  T correction1, correction2;  // 1 / (1 - beta^t)
};
template <typename T>
RowFactors<T> row_factors(const UpdateOptions& options, double rate, int64_t num_updates);

// What the kind does not have may be null.
template <typename T>
struct RowState {
  T* weight = nullptr;
  T* first = nullptr;
  T* second = nullptr;
};
template <typename T>
void update_row(UpdateKind kind, const RowState<T>& row, const T* gradient, int64_t width, const RowFactors<T>& f);

}  // namespace assay::ps
