#include "kernels/philox.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

// Published with Random123, file kat_vectors.
TEST(Philox, GivesThePublishedNumbers) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Block{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}));
}

TEST(Philox, DrawsDropoutFactorsFromItsNumbers) {
  const DropoutKey key{.seed = 0x299f31d0a4093822, .keep = 0.6};
  float factors[kPhiloxBatch];
  dropout_factors(key, 0x123456789a, 128, factors);
  for (uint32_t i = 0; i < kPhiloxBatch; ++i) {
    const auto words = philox4x32({32 + i % 16, 0x3456789a, 0x12, 0}, {0xa4093822, 0x299f31d0});
    EXPECT_EQ(factors[i], words[i / 16] / 4294967296.0 < 0.6 ? 1 / 0.6F : 0.0F) << i;
  }
}

}  // namespace
}  // namespace assay
