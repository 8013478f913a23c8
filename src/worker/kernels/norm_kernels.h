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

// Where the gradient of ReLU passes: y > 0. `y` is read when the caller has it, else made again as x * scale + shift;
// both null: there is no ReLU.
template <typename T>
struct ReluMask {
  const T* y;
  const T* scale;  // widened, as all per-channel values below but sums
  const T* shift;
};

// sums[c] = sum of x; squares[c] = sum of (x - sum / count)^2.
template <typename T>
struct MomentsArgs {
  const T* x;
  int64_t count, channels;
  T* sums;
  T* squares;
};

// The pieces' own means and squared deviations, combined pairwise (Chan, Golub and LeVeque 1983): one pass over memory,
// and no cancellation however far the mean is from zero.
template <typename T>
struct CombineArgs {
  const T* sums;  // of each piece
  const T* squares;
  int64_t rows, piece_rows, channels;
  double* mean;
  double* variance;  // biased
};

// y = relu(x * scale + shift + residual)
template <typename T>
struct ApplyArgs {
  const T* x;
  const T* residual;  // may be null
  T* y;
  const T* scale;
  const T* shift;
  int64_t count, channels;
  bool relu;
  bool streams;  // y is written past the caches
};

// g = dy where ReLU passes, else 0: sums[c] = sum of g; products[c] = sum of g * (x - center).
template <typename T>
struct ReduceArgs {
  const T* dy;
  const T* x;
  ReluMask<T> mask;
  const T* center;
  int64_t count, channels;
  T* sums;
  T* products;
};

// to[c] = the sum of values[piece][c], in the order of pieces.
template <typename T>
struct TotalArgs {
  const T* values;
  int64_t pieces, channels;
  double* to;
};

// dx = a * g + b * x + d; dresidual = g
template <typename T>
struct SpreadArgs {
  const T* dy;
  const T* x;
  ReluMask<T> mask;
  T* dx;
  T* dresidual;  // may be null
  const T* a;
  const T* b;
  const T* d;
  int64_t count, channels;
  bool streams;  // dx and dresidual are written past the caches
};

template <typename T>
void run_norm_moments(const MomentsArgs<T>& args);
template <typename T>
void run_norm_combine(const CombineArgs<T>& args);
template <typename T>
void run_norm_apply(const ApplyArgs<T>& args);
template <typename T>
void run_norm_reduce(const ReduceArgs<T>& args);
template <typename T>
void run_norm_total(const TotalArgs<T>& args);
template <typename T>
void run_norm_spread(const SpreadArgs<T>& args);

}  // namespace assay
