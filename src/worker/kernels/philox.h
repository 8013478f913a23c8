// Random numbers as a function of a position, Philox4x32-7 (Salmon et al. 2011): a dropout mask is computed again in
// the backward pass instead of being kept, and does not depend on threads or vector widths.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/simd.h"

namespace assay {

inline constexpr int kPhiloxRounds = 7;      // the fewest with which the generator passes BigCrush, by its authors
inline constexpr int64_t kPhiloxBatch = 64;  // numbers made at once: 16 counters of four words

// One block of four words; counter and key as in the published test vectors.
inline std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(a)};
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return c;
}

// Dropout of a matrix: which of its elements stay, and what they are multiplied by. Off when keep is 1.
struct DropoutKey {
  uint64_t seed = 0;
  double keep = 1;  // probability that an element stays
  bool on() const { return keep < 1; }
};

// out[i] = 1 / keep or 0 for the 64 elements from `column`, a multiple of 64, of row `row`. Word w of lane l of the
// counters belongs to element 16 w + l, so that 16 lanes give whole vectors.
template <typename T>
ASSAY_INLINE void dropout_factors(const DropoutKey& key, uint64_t row, int64_t column, T* __restrict out) {
  uint32_t c[4][16];
  for (uint32_t l = 0; l < 16; ++l) {
    c[0][l] = static_cast<uint32_t>(column / kPhiloxBatch * 16) + l;
    c[1][l] = static_cast<uint32_t>(row);
    c[2][l] = static_cast<uint32_t>(row >> 32);
    c[3][l] = 0;
  }
  auto k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    for (int l = 0; l < 16; ++l) {
      const uint64_t a = uint64_t{0xD2511F53} * c[0][l];
      const uint64_t b = uint64_t{0xCD9E8D57} * c[2][l];
      c[0][l] = static_cast<uint32_t>(b >> 32) ^ c[1][l] ^ k0;
      c[1][l] = static_cast<uint32_t>(b);
      c[2][l] = static_cast<uint32_t>(a >> 32) ^ c[3][l] ^ k1;
      c[3][l] = static_cast<uint32_t>(a);
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  const auto threshold = static_cast<uint32_t>(key.keep * 4294967296.0);  // keep < 1, so it fits
  const T factor = static_cast<T>(1 / key.keep);
  for (int w = 0; w < 4; ++w) {
    for (int l = 0; l < 16; ++l) out[16 * w + l] = c[w][l] < threshold ? factor : T(0);
  }
}

}  // namespace assay
