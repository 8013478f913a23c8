#include "nn/simd.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

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

SimdWidth choose_simd() {
  const SimdWidth widest = widest_simd();
  const char* asked = std::getenv("ASSAY_SIMD");
  if (!asked || !*asked) return widest;
  const std::string_view name = asked;
  SimdWidth width = SimdWidth::Plain;
  if (name == "avx512") {
    width = SimdWidth::Avx512;
  } else if (name == "avx2") {
    width = SimdWidth::Avx2;
  } else if (name != "plain") {
    throw ConfigError(fmt::format("ASSAY_SIMD '{}': must be plain, avx2 or avx512", name));
  }
  if (width > widest) throw ConfigError(fmt::format("ASSAY_SIMD '{}': this processor does not have it", name));
  return width;
}

}  // namespace

SimdWidth simd_width() {
  static const SimdWidth width = choose_simd();
  return width;
}

}  // namespace assay
