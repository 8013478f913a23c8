// Random numbers that depend on nothing but their seed, the same with every compiler and library.
#pragma once

#include <cstdint>

namespace assay {

class Seeded {
 public:
  Seeded(uint64_t seed, uint64_t stream) : state_(mix(mix(seed) ^ stream)) {}
  uint64_t next() { return mix(state_++); }
  uint64_t below(uint64_t bound) { return next() % bound; }  // bounds here are tiny: the bias is below 1e-15
  double between(double low, double high) { return low + (high - low) * static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  // SplitMix64's output function.
  static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }
  uint64_t state_;
};

}  // namespace assay
