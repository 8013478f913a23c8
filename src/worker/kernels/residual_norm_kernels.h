// The loops of residual_norm.h over a piece of rows, one copy for each vector width.
#pragma once

#include <cstdint>

#include "kernels/philox.h"

namespace assay {

struct NormRows {
  int64_t begin, end, width;
};

template <typename T>
struct NormForwardArgs {
  NormRows rows;
  const T* x;
  const T* delta;  // null: sum is x, and nothing of the addend is used
  const T* delta_bias;
  DropoutKey dropout;
  T* sum;
  T* normed;
  T* mean;     // [rows]
  T* inverse;  // [rows], 1 / standard deviation
  const T* weight;
  const T* bias;
  T epsilon;
};
template <typename T>
void run_norm_forward(const NormForwardArgs<T>& args);

template <typename T>
struct NormBackwardArgs {
  NormRows rows;
  const T* dnormed;
  const T* dsum;  // null: nothing else depends on the sum
  const T* sum;
  const T* mean;
  const T* inverse;
  const T* weight;
  DropoutKey dropout;
  T* dx;
  T* ddelta;  // null: as dx
  // Sums over the rows, added to what is there.
  T* dweight;
  T* dbias;
  T* ddelta_bias;  // null: not wanted
};
template <typename T>
void run_norm_backward(const NormBackwardArgs<T>& args);

}  // namespace assay
