#include "kernels/update_kernels.h"

#include <cmath>

#include "kernels/simd.h"

namespace assay {

namespace {

// Independent sums: one chain of additions would wait for itself, and a fixed number keeps the order fixed.
constexpr int kSumLanes = 16;

double total_of(const double (&sums)[kSumLanes]) {
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

template <UpdateRule R, typename T>
[[gnu::always_inline]] inline void update_element(const UpdateSpan<T>& s, const UpdateFactors<T>& f, int64_t i) {
  constexpr bool kDecoupled = R == UpdateRule::AdamW;
  T weight = s.weight[i];
  T g = s.gradient[i] * f.scale;
  if constexpr (kDecoupled) {
    weight -= f.rate * f.decay * weight;
  } else {
    g += f.decay * weight;
  }
  if constexpr (R == UpdateRule::Sgd) {
    weight -= f.rate * g;
  } else if constexpr (R == UpdateRule::Momentum || R == UpdateRule::Nesterov) {
    const T velocity = f.momentum * s.first[i] + g;
    s.first[i] = velocity;
    weight -= f.rate * (R == UpdateRule::Nesterov ? g + f.momentum * velocity : velocity);
  } else if constexpr (R == UpdateRule::Adagrad) {
    const T sum = s.second[i] + g * g;
    s.second[i] = sum;
    weight -= f.rate * g / (std::sqrt(sum) + f.epsilon);
  } else {
    const T m = f.beta1 * s.first[i] + f.rest1 * g;
    const T v = f.beta2 * s.second[i] + f.rest2 * g * g;
    s.first[i] = m;
    s.second[i] = v;
    weight -= f.rate * (m * f.correction1) / (std::sqrt(v * f.correction2) + f.epsilon);
  }
  s.weight[i] = weight;
}

// LAMB's change before the trust ratio.
template <typename T>
[[gnu::always_inline]] inline T lamb_change(const UpdateSpan<T>& s, const UpdateFactors<T>& f, int64_t i) {
  return s.first[i] * f.correction1 / (std::sqrt(s.second[i] * f.correction2) + f.epsilon) + f.decay * s.weight[i];
}

template <typename T>
[[gnu::always_inline]] inline void lamb_moments(const UpdateSpan<T>& s, const UpdateFactors<T>& f, UpdateNorms* norms) {
  double weights[kSumLanes] = {};
  double changes[kSumLanes] = {};
  const auto element = [&](int64_t i, int lane) __attribute__((always_inline)) {
    const T g = s.gradient[i] * f.scale;
    s.first[i] = f.beta1 * s.first[i] + f.rest1 * g;
    s.second[i] = f.beta2 * s.second[i] + f.rest2 * g * g;
    const auto weight = static_cast<double>(s.weight[i]);
    const auto change = static_cast<double>(lamb_change(s, f, i));
    weights[lane] += weight * weight;
    changes[lane] += change * change;
  };
  const int64_t whole = s.count - s.count % kSumLanes;
  for (int64_t begin = 0; begin < whole; begin += kSumLanes) {
#pragma GCC ivdep
    for (int lane = 0; lane < kSumLanes; ++lane) element(begin + lane, lane);
  }
  for (int64_t i = whole; i < s.count; ++i) element(i, static_cast<int>(i - whole));
  *norms = {total_of(weights), total_of(changes)};
}

template <UpdateRule R, typename T>
[[gnu::always_inline]] inline void update_span(const UpdateSpan<T> span, const UpdateFactors<T> f, UpdateNorms* norms) {
  if constexpr (R == UpdateRule::LambMoments) {
    lamb_moments(span, f, norms);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < span.count; ++i) {
      if constexpr (R == UpdateRule::LambWeights) {
        span.weight[i] -= f.rate * lamb_change(span, f, i);
      } else {
        update_element<R>(span, f, i);
      }
    }
  }
}

template <typename T>
[[gnu::always_inline]] inline double squares_of(const T* values, int64_t count) {
  double sums[kSumLanes] = {};
  const int64_t whole = count - count % kSumLanes;
  for (int64_t begin = 0; begin < whole; begin += kSumLanes) {
#pragma GCC ivdep
    for (int lane = 0; lane < kSumLanes; ++lane) {
      const auto value = static_cast<double>(values[begin + lane]);
      sums[lane] += value * value;
    }
  }
  for (int64_t i = whole; i < count; ++i) sums[i - whole] += static_cast<double>(values[i]) * values[i];
  return total_of(sums);
}

// Ordinary functions rather than ifuncs, which do not mix with sanitizers.
#define ASSAY_UPDATE_VECTOR __attribute__((optimize("O3")))
#if defined(__x86_64__)
#define ASSAY_UPDATE_AVX512 ASSAY_UPDATE_VECTOR __attribute__((target("avx512f,avx512vl,fma,prefer-vector-width=512")))
#define ASSAY_UPDATE_AVX2 ASSAY_UPDATE_VECTOR __attribute__((target("avx2,fma")))
template <UpdateRule R, typename T>
ASSAY_UPDATE_AVX512 void update_avx512(UpdateSpan<T> s, UpdateFactors<T> f, UpdateNorms* norms) {
  update_span<R>(s, f, norms);
}
template <UpdateRule R, typename T>
ASSAY_UPDATE_AVX2 void update_avx2(UpdateSpan<T> s, UpdateFactors<T> f, UpdateNorms* norms) {
  update_span<R>(s, f, norms);
}
template <typename T>
ASSAY_UPDATE_AVX512 double squares_avx512(const T* values, int64_t count) {
  return squares_of(values, count);
}
template <typename T>
ASSAY_UPDATE_AVX2 double squares_avx2(const T* values, int64_t count) {
  return squares_of(values, count);
}
#endif
template <UpdateRule R, typename T>
ASSAY_UPDATE_VECTOR void update_plain(UpdateSpan<T> s, UpdateFactors<T> f, UpdateNorms* norms) {
  update_span<R>(s, f, norms);
}
template <typename T>
ASSAY_UPDATE_VECTOR double squares_plain(const T* values, int64_t count) {
  return squares_of(values, count);
}

template <UpdateRule R, typename T>
UpdateKernel<T> widest_update() {
#if defined(__x86_64__)
  if (simd_width() == SimdWidth::Avx512) return update_avx512<R, T>;
  if (simd_width() == SimdWidth::Avx2) return update_avx2<R, T>;
#endif
  return update_plain<R, T>;
}

}  // namespace

template <typename T>
UpdateFactors<T> update_factors(const UpdateSettings& s) {
  const auto t = static_cast<double>(s.num_updates);
  return {.rate = static_cast<T>(s.rate),
          .decay = static_cast<T>(s.weight_decay),
          .momentum = static_cast<T>(s.momentum),
          .beta1 = static_cast<T>(s.beta1),
          .beta2 = static_cast<T>(s.beta2),
          .epsilon = static_cast<T>(s.epsilon),
          .rest1 = static_cast<T>(1.0 - s.beta1),
          .rest2 = static_cast<T>(1.0 - s.beta2),
          .scale = static_cast<T>(s.scale),
          .correction1 = static_cast<T>(1.0 / (1.0 - std::pow(s.beta1, t))),
          .correction2 = static_cast<T>(1.0 / (1.0 - std::pow(s.beta2, t)))};
}

template UpdateFactors<float> update_factors(const UpdateSettings&);
template UpdateFactors<double> update_factors(const UpdateSettings&);

template <typename T>
UpdateKernel<T> update_kernel(UpdateRule rule) {
  switch (rule) {
    case UpdateRule::Sgd: return widest_update<UpdateRule::Sgd, T>();
    case UpdateRule::Momentum: return widest_update<UpdateRule::Momentum, T>();
    case UpdateRule::Nesterov: return widest_update<UpdateRule::Nesterov, T>();
    case UpdateRule::Adam: return widest_update<UpdateRule::Adam, T>();
    case UpdateRule::AdamW: return widest_update<UpdateRule::AdamW, T>();
    case UpdateRule::Adagrad: return widest_update<UpdateRule::Adagrad, T>();
    case UpdateRule::LambMoments: return widest_update<UpdateRule::LambMoments, T>();
    case UpdateRule::LambWeights: return widest_update<UpdateRule::LambWeights, T>();
  }
  return nullptr;
}

template <typename T>
SquaresKernel<T> squares_kernel() {
#if defined(__x86_64__)
  if (simd_width() == SimdWidth::Avx512) return squares_avx512<T>;
  if (simd_width() == SimdWidth::Avx2) return squares_avx2<T>;
#endif
  return squares_plain<T>;
}

template UpdateKernel<float> update_kernel<float>(UpdateRule);
template UpdateKernel<double> update_kernel<double>(UpdateRule);
template SquaresKernel<float> squares_kernel<float>();
template SquaresKernel<double> squares_kernel<double>();

}  // namespace assay
