#include "nn/norm_kernels.h"

#include <algorithm>

namespace assay {

namespace {

constexpr int64_t kWide = 128;  // elements of a wide row: enough independent additions to hide their latency
// Few pieces, since their sums are put together by one thread; several for each of many threads all the same.
constexpr int64_t kMaxPieces = 64;
constexpr int64_t kMinPieceSize = 4096;  // elements; less is not worth a thread's while
constexpr int64_t kSumBlock = 64;  // wide rows summed before their sum is added to the whole: keeps rounding small

// How many rows make a wide row. A power of two, so that pieces are whole numbers of them.
constexpr int64_t rows_per_wide(int64_t channels) {
  int64_t rows = 1;
  while (rows * 2 * channels <= kWide) rows *= 2;
  return rows;
}

// Adds up the repetitions of each channel in a wide sum.
template <typename T>
[[gnu::always_inline]] inline void fold(const T* wide, int64_t rows, int64_t channels, T* out) {
  for (int64_t c = 0; c < channels; ++c) {
    T sum = 0;
    for (int64_t r = 0; r < rows; ++r) sum += wide[r * channels + c];
    out[c] = sum;
  }
}

// Calls body(first element, width) for every wide row, then for the rows that are left over.
template <typename Body>
[[gnu::always_inline]] inline void each_wide_row(int64_t count, int64_t channels, Body&& body) {
  const int64_t rows = rows_per_wide(channels);
  int64_t row = 0;
  for (; row + rows <= count; row += rows) body(row * channels, rows * channels);
  for (; row < count; ++row) body(row * channels, channels);
}

// The mean of the first rows: near enough to the mean of all that squares around it do not cancel.
template <typename T>
[[gnu::always_inline]] inline void first_mean(const MomentsArgs<T>& p, T* center) {
  const int64_t count = std::min<int64_t>(p.count, 16);
  for (int64_t c = 0; c < p.channels; ++c) center[c] = 0;
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t c = 0; c < p.channels; ++c) center[c] += p.x[row * p.channels + c];
  }
  for (int64_t c = 0; c < p.channels; ++c) center[c] /= static_cast<T>(count);
}

// Sums of up to kSumBlock wide rows at a time, added up in `sum` and `product`, which hold a wide row each.
template <typename T>
struct WideSums {
  T sum[kMaxNormChannels];
  T product[kMaxNormChannels];
  T block_sum[kMaxNormChannels];
  T block_product[kMaxNormChannels];
  int64_t width, in_block = 0;

  [[gnu::always_inline]] explicit WideSums(int64_t wide_row) : width(wide_row) {
    for (T* values : {sum, product, block_sum, block_product}) std::fill(values, values + width, T(0));
  }
  [[gnu::always_inline]] void row_done() {
    if (++in_block == kSumBlock) flush();
  }
  [[gnu::always_inline]] void flush() {
    for (int64_t i = 0; i < width; ++i) {
      sum[i] += block_sum[i];
      product[i] += block_product[i];
      block_sum[i] = block_product[i] = 0;
    }
    in_block = 0;
  }
};

template <typename T>
[[gnu::always_inline]] inline void moments_body(const MomentsArgs<T>& p, T* sums, T* squares) {
  const int64_t rows = rows_per_wide(p.channels);
  T center[kMaxNormChannels];
  first_mean(p, center);
  for (int64_t r = 1; r < rows; ++r) std::copy(center, center + p.channels, center + r * p.channels);
  WideSums<T> totals(rows * p.channels);
  each_wide_row(
      p.count, p.channels, [&](int64_t at, int64_t n) __attribute__((always_inline)) {
        const T* __restrict x = p.x + at;
        for (int64_t i = 0; i < n; ++i) {
          const T difference = x[i] - center[i];
          totals.block_sum[i] += difference;
          totals.block_product[i] += difference * difference;
        }
        totals.row_done();
      });
  totals.flush();
  fold(totals.sum, rows, p.channels, sums);
  fold(totals.product, rows, p.channels, squares);
  for (int64_t c = 0; c < p.channels; ++c) {
    const T count = static_cast<T>(p.count);
    squares[c] = std::max(squares[c] - sums[c] * (sums[c] / count), T(0));
    sums[c] += count * center[c];
  }
}

template <typename T, bool Residual, bool Relu>
[[gnu::always_inline]] inline void apply_body(const ApplyArgs<T>& p) {
  each_wide_row(
      p.count, p.channels, [&](int64_t at, int64_t n) __attribute__((always_inline)) {
        const T* __restrict x = p.x + at;
        const T* __restrict residual = Residual ? p.residual + at : nullptr;
        const T* __restrict scale = p.scale;
        const T* __restrict shift = p.shift;
        T* __restrict y = p.y + at;
        for (int64_t i = 0; i < n; ++i) {
          T value = x[i] * scale[i] + shift[i];
          if constexpr (Residual) value += residual[i];
          // A comparison that keeps NaN: a broken value must reach the loss.
          if constexpr (Relu) value = value < T(0) ? T(0) : value;
          y[i] = value;
        }
      });
}

template <typename T>
[[gnu::always_inline]] inline void apply_any(const ApplyArgs<T>& p) {
  if (p.residual) {
    p.relu ? apply_body<T, true, true>(p) : apply_body<T, true, false>(p);
  } else {
    p.relu ? apply_body<T, false, true>(p) : apply_body<T, false, false>(p);
  }
}

template <typename T, bool Relu>
[[gnu::always_inline]] inline void reduce_body(const ReduceArgs<T>& p, T* sums, T* products) {
  const int64_t rows = rows_per_wide(p.channels);
  WideSums<T> totals(rows * p.channels);
  each_wide_row(
      p.count, p.channels, [&](int64_t at, int64_t n) __attribute__((always_inline)) {
        const T* __restrict dy = p.dy + at;
        const T* __restrict y = Relu ? p.y + at : nullptr;
        const T* __restrict x = p.x + at;
        const T* __restrict center = p.center;
        for (int64_t i = 0; i < n; ++i) {
          T g = dy[i];
          if constexpr (Relu) g = y[i] > T(0) ? g : T(0);
          totals.block_sum[i] += g;
          totals.block_product[i] += g * (x[i] - center[i]);
        }
        totals.row_done();
      });
  totals.flush();
  fold(totals.sum, rows, p.channels, sums);
  fold(totals.product, rows, p.channels, products);
}

template <typename T>
[[gnu::always_inline]] inline void reduce_any(const ReduceArgs<T>& p, T* sums, T* products) {
  p.y ? reduce_body<T, true>(p, sums, products) : reduce_body<T, false>(p, sums, products);
}

template <typename T, bool Relu, bool Residual>
[[gnu::always_inline]] inline void spread_body(const SpreadArgs<T>& p) {
  each_wide_row(
      p.count, p.channels, [&](int64_t at, int64_t n) __attribute__((always_inline)) {
        const T* __restrict dy = p.dy + at;
        const T* __restrict y = Relu ? p.y + at : nullptr;
        const T* __restrict x = p.x + at;
        const T* __restrict a = p.a;
        const T* __restrict b = p.b;
        const T* __restrict d = p.d;
        T* __restrict dx = p.dx + at;
        T* __restrict dresidual = Residual ? p.dresidual + at : nullptr;
        for (int64_t i = 0; i < n; ++i) {
          T g = dy[i];
          if constexpr (Relu) g = y[i] > T(0) ? g : T(0);
          if constexpr (Residual) dresidual[i] = g;
          dx[i] = a[i] * g + (b[i] * x[i] + d[i]);
        }
      });
}

template <typename T>
[[gnu::always_inline]] inline void spread_any(const SpreadArgs<T>& p) {
  if (p.y) {
    p.dresidual ? spread_body<T, true, true>(p) : spread_body<T, true, false>(p);
  } else {
    p.dresidual ? spread_body<T, false, true>(p) : spread_body<T, false, false>(p);
  }
}

#define ASSAY_COPIES(Attributes, Suffix)                                    \
  template <typename T>                                                     \
  Attributes void moments_##Suffix(MomentsArgs<T> p, T* sums, T* squares) { \
    moments_body(p, sums, squares);                                         \
  }                                                                         \
  template <typename T>                                                     \
  Attributes void apply_##Suffix(ApplyArgs<T> p) {                          \
    apply_any(p);                                                           \
  }                                                                         \
  template <typename T>                                                     \
  Attributes void reduce_##Suffix(ReduceArgs<T> p, T* sums, T* products) {  \
    reduce_any(p, sums, products);                                          \
  }                                                                         \
  template <typename T>                                                     \
  Attributes void spread_##Suffix(SpreadArgs<T> p) {                        \
    spread_any(p);                                                          \
  }

ASSAY_COPIES(__attribute__((optimize("O3"))), plain)
#if defined(__x86_64__)
ASSAY_COPIES(__attribute__((optimize("O3"), target("avx2,fma"))), avx2)
ASSAY_COPIES(__attribute__((optimize("O3"), target("avx512f,avx512vl,avx512dq,avx512bw,fma,prefer-vector-width=512"))),
             avx512)
#endif

enum class Width { Plain, Avx2, Avx512 };
Width widest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw")) {
    return Width::Avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Width::Avx2;
#endif
  return Width::Plain;
}

#if defined(__x86_64__)
#define ASSAY_CHOOSE(name) \
  (widest() == Width::Avx512 ? name##_avx512<T> : widest() == Width::Avx2 ? name##_avx2<T> : name##_plain<T>)
#else
#define ASSAY_CHOOSE(name) (name##_plain<T>)
#endif

}  // namespace

int64_t piece_rows(int64_t rows, int64_t channels) {
  const int64_t wide = rows_per_wide(channels);
  const int64_t least = std::max((rows + kMaxPieces - 1) / kMaxPieces, kMinPieceSize / channels);
  return std::max<int64_t>((least + wide - 1) / wide, 1) * wide;
}

template <typename T>
std::vector<T> widen(const std::vector<T>& per_channel) {
  std::vector<T> wide;
  for (int64_t r = 0; r < rows_per_wide(static_cast<int64_t>(per_channel.size())); ++r) {
    wide.insert(wide.end(), per_channel.begin(), per_channel.end());
  }
  return wide;
}

template <typename T>
MomentsKernel<T> moments_kernel() {
  return ASSAY_CHOOSE(moments);
}
template <typename T>
ApplyKernel<T> apply_kernel() {
  return ASSAY_CHOOSE(apply);
}
template <typename T>
ReduceKernel<T> reduce_kernel() {
  return ASSAY_CHOOSE(reduce);
}
template <typename T>
SpreadKernel<T> spread_kernel() {
  return ASSAY_CHOOSE(spread);
}

template std::vector<float> widen(const std::vector<float>&);
template std::vector<double> widen(const std::vector<double>&);
template MomentsKernel<float> moments_kernel();
template MomentsKernel<double> moments_kernel();
template ApplyKernel<float> apply_kernel();
template ApplyKernel<double> apply_kernel();
template ReduceKernel<float> reduce_kernel();
template ReduceKernel<double> reduce_kernel();
template SpreadKernel<float> spread_kernel();
template SpreadKernel<double> spread_kernel();

}  // namespace assay
