// Random numbers that are a function of their key alone: the same on every machine and in every thread, so the order of
// samples and their augmentation do not depend on who computes them.
#pragma once

#include <cstdint>

namespace assay {

// SplitMix64's output function: a bijection that spreads every input bit.
inline uint64_t mix_bits(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// A stream of numbers for one key of up to three parts.
class KeyedRandom {
 public:
  KeyedRandom(uint64_t a, uint64_t b, uint64_t c = 0) : state_(mix_bits(mix_bits(mix_bits(a) ^ b) ^ c)) {}

  uint64_t next() { return mix_bits(state_++); }

  // 0 .. bound-1, each equally likely: the few values that would favour small results are drawn again.
  uint64_t below(uint64_t bound) {
    const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    uint64_t value = next();
    while (value >= limit) value = next();
    return value % bound;
  }

 private:
  uint64_t state_;
};

}  // namespace assay
