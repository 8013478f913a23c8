#include "kernels/residual_norm_kernels.h"

#include <algorithm>
#include <cmath>

namespace assay {

namespace {

// to = x + factors * (delta + bias), a row.
template <typename T>
ASSAY_INLINE void add_row(const NormForwardArgs<T>& p, int64_t row) {
  const int64_t width = p.rows.width;
  const T* __restrict x = p.x + row * width;
  const T* __restrict delta = p.delta + row * width;
  const T* __restrict bias = p.delta_bias;
  T* __restrict sum = p.sum + row * width;
  if (!p.dropout.on()) {
    for (int64_t c = 0; c < width; ++c) sum[c] = x[c] + (delta[c] + bias[c]);
    return;
  }
  T factors[kPhiloxBatch];
  for (int64_t first = 0; first < width; first += kPhiloxBatch) {
    dropout_factors(p.dropout, static_cast<uint64_t>(row), first, factors);
    const int64_t count = std::min(kPhiloxBatch, width - first);
    for (int64_t c = 0; c < count; ++c) {
      sum[first + c] = x[first + c] + (delta[first + c] + bias[first + c]) * factors[c];
    }
  }
}

template <typename T, int Bytes>
ASSAY_INLINE void norm_forward(const NormForwardArgs<T>& p) {
  using V = simd::Vec<T, Bytes>;
  const int64_t width = p.rows.width;
  for (int64_t row = p.rows.begin; row < p.rows.end; ++row) {
    if (p.delta) add_row(p, row);
    const T* __restrict x = (p.delta ? p.sum : p.x) + row * width;
    V sums{};
    simd::each_vector<T, Bytes>(
        width, [&](int64_t i, int64_t n) __attribute__((always_inline)) { sums += simd::load_up_to<V>(x + i, n); });
    const T mean = simd::sum_of<T, Bytes>(sums) / static_cast<T>(width);
    V squares{};
    simd::each_vector<T, Bytes>(
        width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
          const V difference = simd::load_up_to<V>(x + i, n, mean) - mean;
          squares += difference * difference;
        });
    const T variance = simd::sum_of<T, Bytes>(squares) / static_cast<T>(width);
    const T inverse = 1 / std::sqrt(variance + p.epsilon);
    p.mean[row] = mean;
    p.inverse[row] = inverse;
    const T* __restrict weight = p.weight;
    const T* __restrict bias = p.bias;
    T* __restrict to = p.normed + row * width;
    for (int64_t c = 0; c < width; ++c) to[c] = (x[c] - mean) * inverse * weight[c] + bias[c];
  }
}

// The gradient of delta + bias from that of the sum, and its column sums.
template <typename T>
ASSAY_INLINE void addend_row(const NormBackwardArgs<T>& p, int64_t row) {
  const int64_t width = p.rows.width;
  const T* __restrict dx = p.dx + row * width;
  T* __restrict bias = p.ddelta_bias;
  if (!p.dropout.on()) {
    for (int64_t c = 0; c < width; ++c) bias[c] += dx[c];
    return;
  }
  T* __restrict ddelta = p.ddelta + row * width;
  T factors[kPhiloxBatch];
  for (int64_t first = 0; first < width; first += kPhiloxBatch) {
    dropout_factors(p.dropout, static_cast<uint64_t>(row), first, factors);
    const int64_t count = std::min(kPhiloxBatch, width - first);
    for (int64_t c = 0; c < count; ++c) {
      const T value = dx[first + c] * factors[c];
      ddelta[first + c] = value;
      bias[first + c] += value;
    }
  }
}

template <typename T, int Bytes>
ASSAY_INLINE void norm_backward(const NormBackwardArgs<T>& p) {
  using V = simd::Vec<T, Bytes>;
  const int64_t width = p.rows.width;
  for (int64_t row = p.rows.begin; row < p.rows.end; ++row) {
    const T* __restrict dy = p.dnormed + row * width;
    const T* __restrict x = p.sum + row * width;
    const T* __restrict weight = p.weight;
    T* __restrict dweight = p.dweight;
    T* __restrict dbias = p.dbias;
    T* __restrict dx = p.dx + row * width;
    const T mean = p.mean[row], inverse = p.inverse[row];
    V sums{}, products{};
    simd::each_vector<T, Bytes>(
        width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
          const V gradient = simd::load_up_to<V>(dy + i, n);
          const V scaled = gradient * simd::load_up_to<V>(weight + i, n);
          const V normal = (simd::load_up_to<V>(x + i, n, mean) - mean) * inverse;
          sums += scaled;
          products += scaled * normal;
          simd::store_up_to(dweight + i, simd::load_up_to<V>(dweight + i, n) + gradient * normal, n);
          simd::store_up_to(dbias + i, simd::load_up_to<V>(dbias + i, n) + gradient, n);
        });
    const T shift = simd::sum_of<T, Bytes>(sums) / static_cast<T>(width);
    const T slope = simd::sum_of<T, Bytes>(products) / static_cast<T>(width);
    if (p.dsum) {
      const T* __restrict dsum = p.dsum + row * width;
      for (int64_t c = 0; c < width; ++c) {
        dx[c] = dsum[c] + inverse * (dy[c] * weight[c] - shift - (x[c] - mean) * inverse * slope);
      }
    } else {
      for (int64_t c = 0; c < width; ++c) {
        dx[c] = inverse * (dy[c] * weight[c] - shift - (x[c] - mean) * inverse * slope);
      }
    }
    if (p.ddelta_bias) addend_row(p, row);
  }
}

}  // namespace

ASSAY_SIMD_KERNEL(norm_forward, NormForwardArgs)
ASSAY_SIMD_KERNEL(norm_backward, NormBackwardArgs)

template void run_norm_forward(const NormForwardArgs<float>&);
template void run_norm_forward(const NormForwardArgs<double>&);
template void run_norm_backward(const NormBackwardArgs<float>&);
template void run_norm_backward(const NormBackwardArgs<double>&);

}  // namespace assay
