// Vectors for the loops of this folder: one source, compiled once a vector width, chosen at run time.
//
// A kernel is a function template `void name(const Args<T>&)` over <typename T, int Bytes>, always inlined, written
// with Vec<T, Bytes>; ASSAY_SIMD_KERNEL(name, Args) makes run_name(args) of it, which runs the widest copy of this
// processor. Ordinary functions with target attributes, since sanitizers and ifuncs do not mix.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#define ASSAY_INLINE [[gnu::always_inline]] inline

namespace assay {

enum class SimdWidth { Plain, Avx2, Avx512 };
// The widest that this processor has, or what `requested` (plain, avx2, avx512) says when it is not empty. Throws
// ConfigError when that names no width, or one that the processor does not have.
SimdWidth choose_simd_width(std::string_view requested);
// By the environment variable ASSAY_SIMD, requested once.
SimdWidth simd_width();

namespace simd {

template <typename T, int Bytes>
struct VecOf {
  typedef T type __attribute__((vector_size(Bytes)));  // NOLINT(modernize-use-using): the attribute needs a typedef
};
template <typename T, int Bytes>
using Vec = typename VecOf<T, Bytes>::type;
template <typename T, int Bytes>
inline constexpr int64_t kLanes = Bytes / static_cast<int64_t>(sizeof(T));

template <typename V, typename T>
ASSAY_INLINE V load(const T* from) {
  V value;
  __builtin_memcpy(&value, from, sizeof(V));
  return value;
}
template <typename V, typename T>
ASSAY_INLINE void store(T* to, V value) {
  __builtin_memcpy(to, &value, sizeof(V));
}
// Past the caches, for results that are much larger than these: the processor need not read what is overwritten. `to`
// is aligned to the vector. Others see it after streams_done().
template <typename V, typename T>
ASSAY_INLINE void stream(T* to, V value) {
#if defined(__x86_64__)
  // In assembler, since intrinsics cannot be inlined through functions without a target.
  V* vector = reinterpret_cast<V*>(to);
  if constexpr (sizeof(V) == 16) {
    asm("movntps %1, %0" : "=m"(*vector) : "x"(value));
  } else if constexpr (sizeof(V) == 32) {
    asm("vmovntps %1, %0" : "=m"(*vector) : "x"(value));
  } else {
    asm("vmovntps %1, %0" : "=m"(*vector) : "v"(value));
  }
#else
  store(to, value);
#endif
}
ASSAY_INLINE void streams_done() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}
template <typename V, typename T>
ASSAY_INLINE V all(T value) {
  return value - V{};
}

// The first `count` lanes, `rest` in the others; for the end of a row.
template <typename V, typename T>
ASSAY_INLINE V load_some(const T* from, int64_t count, T rest) {
  V value = all<V>(rest);
  __builtin_memcpy(&value, from, static_cast<size_t>(count) * sizeof(T));
  return value;
}
template <typename V, typename T>
ASSAY_INLINE void store_some(T* to, V value, int64_t count) {
  __builtin_memcpy(to, &value, static_cast<size_t>(count) * sizeof(T));
}

// In a fixed order that does not depend on anything but the width.
template <typename T, int Bytes>
ASSAY_INLINE T sum_of(Vec<T, Bytes> value) {
  T sum = 0;
  for (int64_t i = 0; i < kLanes<T, Bytes>; ++i) sum += value[i];
  return sum;
}
template <typename T, int Bytes>
ASSAY_INLINE T max_of(Vec<T, Bytes> value) {
  T max = value[0];
  for (int64_t i = 1; i < kLanes<T, Bytes>; ++i) max = value[i] > max ? value[i] : max;
  return max;
}

// Calls body(i, count) for the vectors of a row: count is the number of lanes, fewer at the end of the row.
template <typename T, int Bytes, typename Body>
ASSAY_INLINE void each_vector(int64_t n, Body&& body) {
  constexpr int64_t kL = kLanes<T, Bytes>;
  int64_t i = 0;
  for (; i + kL <= n; i += kL) body(i, kL);
  if (i < n) body(i, n - i);
}
template <typename V, typename T>
ASSAY_INLINE V load_up_to(const T* from, int64_t count, T rest = 0) {
  return count == static_cast<int64_t>(sizeof(V) / sizeof(T)) ? load<V>(from) : load_some<V>(from, count, rest);
}
template <typename V, typename T>
ASSAY_INLINE void store_up_to(T* to, V value, int64_t count) {
  count == static_cast<int64_t>(sizeof(V) / sizeof(T)) ? store(to, value) : store_some(to, value, count);
}

// e^x. float: within 2 units in the last place from -87 to 88, 0 below, e^88 above (Cephes' expf polynomial). NaN
// stays.
template <typename T, int Bytes>
ASSAY_INLINE Vec<T, Bytes> exp_of(Vec<T, Bytes> x) {
  using V = Vec<T, Bytes>;
  if constexpr (sizeof(T) == 4) {
    using I = Vec<int32_t, Bytes>;
    const V lowest = all<V>(-87.0F), highest = all<V>(88.0F);
    V y = x < lowest ? lowest : x;
    y = y > highest ? highest : y;
    const V shifted = y * 1.44269504088896341F + 12582912.0F;  // 1.5 * 2^23: the sum's low bits are round(y / ln 2)
    const V n = shifted - 12582912.0F;
    const V r = (y - n * 0.693359375F) - n * -2.12194440e-4F;
    V p = all<V>(1.9875691500e-4F);
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * (r * r) + r + 1.0F;
    const V scaled = reinterpret_cast<V>(reinterpret_cast<I>(p) + (reinterpret_cast<I>(shifted) << 23));
    const V cut = x < lowest ? V{} : scaled;
    return x == x ? cut : x;
  } else {
    V y;
    for (int64_t i = 0; i < kLanes<T, Bytes>; ++i) y[i] = std::exp(x[i]);
    return y;
  }
}

}  // namespace simd
}  // namespace assay

#if defined(__x86_64__)
#define ASSAY_SIMD_KERNEL(name, Args)                                                                            \
  template <typename T>                                                                                          \
  __attribute__((optimize("O3"))) void name##_plain(const Args<T>& args) {                                       \
    name<T, 16>(args);                                                                                           \
  }                                                                                                              \
  template <typename T>                                                                                          \
  __attribute__((optimize("O3"), target("avx2,fma"))) void name##_avx2(const Args<T>& args) {                    \
    name<T, 32>(args);                                                                                           \
  }                                                                                                              \
  template <typename T>                                                                                          \
  __attribute__((optimize("O3"), target("avx512f,avx512vl,avx512dq,avx512bw,fma,prefer-vector-width=512"))) void \
      name##_avx512(const Args<T>& args) {                                                                       \
    name<T, 64>(args);                                                                                           \
  }                                                                                                              \
  template <typename T>                                                                                          \
  void run_##name(const Args<T>& args) {                                                                         \
    const SimdWidth width = simd_width();                                                                        \
    width == SimdWidth::Avx512 ? name##_avx512(args)                                                             \
    : width == SimdWidth::Avx2 ? name##_avx2(args)                                                               \
                               : name##_plain(args);                                                             \
  }
#else
#define ASSAY_SIMD_KERNEL(name, Args)    \
  template <typename T>                  \
  void run_##name(const Args<T>& args) { \
    name<T, 16>(args);                   \
  }
#endif
