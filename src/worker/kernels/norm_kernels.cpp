#include "kernels/norm_kernels.h"

#include <algorithm>

#include "kernels/simd.h"

namespace assay {

namespace {

constexpr int64_t kWide = 128;  // elements of a wide row: enough independent additions to hide their latency
// Few pieces, since their sums are put together by one thread; several for each of many threads all the same.
constexpr int64_t kMaxPieces = 64;
constexpr int64_t kMinPieceSize = 32768;  // elements
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

template <typename T, int Bytes>
ASSAY_INLINE void norm_moments(const MomentsArgs<T>& p) {
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
  fold(totals.sum, rows, p.channels, p.sums);
  fold(totals.product, rows, p.channels, p.squares);
  for (int64_t c = 0; c < p.channels; ++c) {
    const T count = static_cast<T>(p.count);
    p.squares[c] = std::max(p.squares[c] - p.sums[c] * (p.sums[c] / count), T(0));
    p.sums[c] += count * center[c];
  }
}

template <typename T, int Bytes>
ASSAY_INLINE void norm_combine(const CombineArgs<T>& p) {
  double* __restrict mean = p.mean;
  double* __restrict variance = p.variance;
  std::fill(mean, mean + p.channels, 0);
  std::fill(variance, variance + p.channels, 0);
  for (int64_t done = 0, piece = 0; done < p.rows; done += p.piece_rows, ++piece) {
    const auto count = static_cast<double>(std::min(p.piece_rows, p.rows - done));
    const double share = count / (static_cast<double>(done) + count), weight = static_cast<double>(done) * share;
    const T* __restrict sums = p.sums + piece * p.channels;
    const T* __restrict squares = p.squares + piece * p.channels;
    for (int64_t c = 0; c < p.channels; ++c) {
      const double difference = static_cast<double>(sums[c]) / count - mean[c];
      mean[c] += difference * share;
      variance[c] += static_cast<double>(squares[c]) + difference * difference * weight;
    }
  }
  for (int64_t c = 0; c < p.channels; ++c) variance[c] /= static_cast<double>(p.rows);
}

template <typename T, int Bytes>
ASSAY_INLINE void norm_total(const TotalArgs<T>& p) {
  double* __restrict to = p.to;
  std::fill(to, to + p.channels, 0);
  for (int64_t piece = 0; piece < p.pieces; ++piece) {
    const T* __restrict values = p.values + piece * p.channels;
    for (int64_t c = 0; c < p.channels; ++c) to[c] += static_cast<double>(values[c]);
  }
}

template <bool Streams, typename V, typename T>
ASSAY_INLINE void put(T* to, V value, int64_t count) {
  if constexpr (Streams) {
    simd::stream(to, value);
  } else {
    simd::store_up_to(to, value, count);
  }
}

template <typename T, int Bytes, bool Residual, bool Relu, bool Streams>
ASSAY_INLINE void apply_rows(const ApplyArgs<T>& p) {
  using V = simd::Vec<T, Bytes>;
  each_wide_row(
      p.count, p.channels, [&](int64_t at, int64_t width) __attribute__((always_inline)) {
        simd::each_vector<T, Bytes>(
            width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
              V value = simd::load_up_to<V>(p.x + at + i, n) * simd::load_up_to<V>(p.scale + i, n) +
                        simd::load_up_to<V>(p.shift + i, n);
              if constexpr (Residual) value += simd::load_up_to<V>(p.residual + at + i, n);
              // A comparison that keeps NaN: a broken value must reach the loss.
              if constexpr (Relu) value = value < V{} ? V{} : value;
              put<Streams>(p.y + at + i, value, n);
            });
      });
  if constexpr (Streams) simd::streams_done();
}

template <typename T, int Bytes, bool Streams>
ASSAY_INLINE void apply_any(const ApplyArgs<T>& p) {
  if (p.residual) {
    p.relu ? apply_rows<T, Bytes, true, true, Streams>(p) : apply_rows<T, Bytes, true, false, Streams>(p);
  } else {
    p.relu ? apply_rows<T, Bytes, false, true, Streams>(p) : apply_rows<T, Bytes, false, false, Streams>(p);
  }
}

template <typename T, int Bytes>
ASSAY_INLINE void norm_apply(const ApplyArgs<T>& p) {
  p.streams ? apply_any<T, Bytes, true>(p) : apply_any<T, Bytes, false>(p);
}

enum class MaskFrom { Nothing, Y, X };

template <typename T, int Bytes, MaskFrom From>
ASSAY_INLINE simd::Vec<T, Bytes> masked(const ReluMask<T>& mask, simd::Vec<T, Bytes> dy, simd::Vec<T, Bytes> x,
                                        int64_t at, int64_t i, int64_t n) {
  using V = simd::Vec<T, Bytes>;
  if constexpr (From == MaskFrom::Y) {
    return simd::load_up_to<V>(mask.y + at + i, n) > V{} ? dy : V{};
  } else if constexpr (From == MaskFrom::X) {
    return x * simd::load_up_to<V>(mask.scale + i, n) + simd::load_up_to<V>(mask.shift + i, n) > V{} ? dy : V{};
  } else {
    return dy;
  }
}

template <typename T, int Bytes, MaskFrom From>
ASSAY_INLINE void reduce_rows(const ReduceArgs<T>& p) {
  using V = simd::Vec<T, Bytes>;
  const int64_t rows = rows_per_wide(p.channels);
  WideSums<T> totals(rows * p.channels);
  each_wide_row(
      p.count, p.channels, [&](int64_t at, int64_t width) __attribute__((always_inline)) {
        simd::each_vector<T, Bytes>(
            width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
              const V x = simd::load_up_to<V>(p.x + at + i, n);
              const V g = masked<T, Bytes, From>(p.mask, simd::load_up_to<V>(p.dy + at + i, n), x, at, i, n);
              T* sum = totals.block_sum + i;
              T* product = totals.block_product + i;
              simd::store_up_to(sum, simd::load_up_to<V>(sum, n) + g, n);
              simd::store_up_to(product,
                                simd::load_up_to<V>(product, n) + g * (x - simd::load_up_to<V>(p.center + i, n)), n);
            });
        totals.row_done();
      });
  totals.flush();
  fold(totals.sum, rows, p.channels, p.sums);
  fold(totals.product, rows, p.channels, p.products);
}

template <typename T, int Bytes>
ASSAY_INLINE void norm_reduce(const ReduceArgs<T>& p) {
  if (p.mask.y) {
    reduce_rows<T, Bytes, MaskFrom::Y>(p);
  } else {
    p.mask.scale ? reduce_rows<T, Bytes, MaskFrom::X>(p) : reduce_rows<T, Bytes, MaskFrom::Nothing>(p);
  }
}

template <typename T, int Bytes, MaskFrom From, bool Residual, bool Streams>
ASSAY_INLINE void spread_rows(const SpreadArgs<T>& p) {
  using V = simd::Vec<T, Bytes>;
  each_wide_row(
      p.count, p.channels, [&](int64_t at, int64_t width) __attribute__((always_inline)) {
        simd::each_vector<T, Bytes>(
            width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
              const V x = simd::load_up_to<V>(p.x + at + i, n);
              const V g = masked<T, Bytes, From>(p.mask, simd::load_up_to<V>(p.dy + at + i, n), x, at, i, n);
              if constexpr (Residual) put<Streams>(p.dresidual + at + i, g, n);
              put<Streams>(p.dx + at + i,
                           simd::load_up_to<V>(p.a + i, n) * g +
                               (simd::load_up_to<V>(p.b + i, n) * x + simd::load_up_to<V>(p.d + i, n)),
                           n);
            });
      });
  if constexpr (Streams) simd::streams_done();
}

template <typename T, int Bytes, bool Streams>
ASSAY_INLINE void spread_any(const SpreadArgs<T>& p) {
  if (p.mask.y) {
    p.dresidual ? spread_rows<T, Bytes, MaskFrom::Y, true, Streams>(p)
                : spread_rows<T, Bytes, MaskFrom::Y, false, Streams>(p);
  } else if (p.mask.scale) {
    spread_rows<T, Bytes, MaskFrom::X, false, Streams>(p);
  } else {
    spread_rows<T, Bytes, MaskFrom::Nothing, false, Streams>(p);
  }
}

template <typename T, int Bytes>
ASSAY_INLINE void norm_spread(const SpreadArgs<T>& p) {
  p.streams ? spread_any<T, Bytes, true>(p) : spread_any<T, Bytes, false>(p);
}

}  // namespace

ASSAY_SIMD_KERNEL(norm_moments, MomentsArgs)
ASSAY_SIMD_KERNEL(norm_combine, CombineArgs)
ASSAY_SIMD_KERNEL(norm_apply, ApplyArgs)
ASSAY_SIMD_KERNEL(norm_reduce, ReduceArgs)
ASSAY_SIMD_KERNEL(norm_total, TotalArgs)
ASSAY_SIMD_KERNEL(norm_spread, SpreadArgs)

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

template std::vector<float> widen(const std::vector<float>&);
template std::vector<double> widen(const std::vector<double>&);
template void run_norm_moments(const MomentsArgs<float>&);
template void run_norm_moments(const MomentsArgs<double>&);
template void run_norm_combine(const CombineArgs<float>&);
template void run_norm_combine(const CombineArgs<double>&);
template void run_norm_apply(const ApplyArgs<float>&);
template void run_norm_apply(const ApplyArgs<double>&);
template void run_norm_reduce(const ReduceArgs<float>&);
template void run_norm_reduce(const ReduceArgs<double>&);
template void run_norm_total(const TotalArgs<float>&);
template void run_norm_total(const TotalArgs<double>&);
template void run_norm_spread(const SpreadArgs<float>&);
template void run_norm_spread(const SpreadArgs<double>&);

}  // namespace assay
