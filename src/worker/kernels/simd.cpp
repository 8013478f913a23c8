#include "kernels/simd.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/error.h"

namespace assay {

namespace {

SimdWidth widest_simd() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw")) {
    return SimdWidth::Avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return SimdWidth::Avx2;
#endif
  return SimdWidth::Plain;
}

}  // namespace

SimdWidth choose_simd_width(std::string_view requested) {
  const SimdWidth widest = widest_simd();
  if (requested.empty()) return widest;
  SimdWidth width = SimdWidth::Plain;
  if (requested == "avx512") {
    width = SimdWidth::Avx512;
  } else if (requested == "avx2") {
    width = SimdWidth::Avx2;
  } else if (requested != "plain") {
    throw ConfigError(fmt::format("ASSAY_SIMD '{}': must be plain, avx2 or avx512", requested));
  }
  if (width > widest) throw ConfigError(fmt::format("ASSAY_SIMD '{}': this processor does not have it", requested));
  return width;
}

SimdWidth simd_width() {
  static const SimdWidth width = [] {
    const char* requested = std::getenv("ASSAY_SIMD");
    return choose_simd_width(requested ? requested : "");
  }();
  return width;
}

}  // namespace assay
