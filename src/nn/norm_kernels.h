// The loops of norm_act.h over a piece of rows [count, channels], one copy for each vector width. Several rows are
// taken as one wide row, so that the few channels of a small network still fill registers and hide latencies;
// per-channel values are repeated to that width by widen().
#pragma once

#include <cstdint>
#include <vector>

namespace assay {

inline constexpr int64_t kMaxNormChannels = 4096;

// Rows of one piece: a fixed function of the shape, whatever the number of threads.
int64_t piece_rows(int64_t rows, int64_t channels);

template <typename T>
std::vector<T> widen(const std::vector<T>& per_channel);

template <typename T>
struct MomentsArgs {
  const T* x;
  int64_t count, channels;
};
// sums[c] = sum of x; squares[c] = sum of (x - sum / count)^2.
template <typename T>
using MomentsKernel = void (*)(MomentsArgs<T>, T* sums, T* squares);

template <typename T>
struct ApplyArgs {
  const T* x;
  const T* residual;  // may be null
  T* y;
  const T* scale;  // widened, as all per-channel values below
  const T* shift;
  int64_t count, channels;
  bool relu;
};
// y = relu(x * scale + shift + residual)
template <typename T>
using ApplyKernel = void (*)(ApplyArgs<T>);

template <typename T>
struct ReduceArgs {
  const T* dy;
  const T* y;  // null: no ReLU
  const T* x;
  const T* center;
  int64_t count, channels;
};
// g = dy where y > 0, else 0: sums[c] = sum of g; products[c] = sum of g * (x - center).
template <typename T>
using ReduceKernel = void (*)(ReduceArgs<T>, T* sums, T* products);

template <typename T>
struct SpreadArgs {
  const T* dy;
  const T* y;  // null: no ReLU
  const T* x;
  T* dx;
  T* dresidual;  // may be null
  const T* a;
  const T* b;
  const T* d;
  int64_t count, channels;
};
// dx = a * g + b * x + d; dresidual = g
template <typename T>
using SpreadKernel = void (*)(SpreadArgs<T>);

// The fastest copy that this processor has.
template <typename T>
MomentsKernel<T> moments_kernel();
template <typename T>
ApplyKernel<T> apply_kernel();
template <typename T>
ReduceKernel<T> reduce_kernel();
template <typename T>
SpreadKernel<T> spread_kernel();

}  // namespace assay
