#include "kernels/simd.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace assay {
namespace {

using Four = simd::Vec<float, 16>;

TEST(Simd, ComputesTheExponentialToTheLastPlaces) {
  double worst = 0;
  for (float x = -86.9F; x < 88; x += 0.0137F) {
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(simd::exp_of<float, 16>(simd::all<Four>(x))[0] / exact - 1));
  }
  EXPECT_LT(worst, 2.5e-7);
}

TEST(Simd, ComputesTheExponentialAtItsEnds) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Four y = simd::exp_of<float, 16>(Four{-infinity, -1000, 0, NAN});
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 1);
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_FLOAT_EQ((simd::exp_of<float, 16>(simd::all<Four>(infinity))[0]), std::exp(88.0F));
}

TEST(Simd, LoadsAndStoresPartsOfAVector) {
  const float from[] = {1, 2, 3, 4};
  const Four value = simd::load_up_to<Four>(from, 3, 9.0F);
  EXPECT_EQ(value[2], 3);
  EXPECT_EQ(value[3], 9);
  float to[] = {0, 0, 0, 0};
  simd::store_up_to(to, value, 2);
  EXPECT_EQ(to[1], 2);
  EXPECT_EQ(to[2], 0);
}

TEST(Simd, RejectsAnUnknownWidth) {
  EXPECT_EQ(choose_simd_width("plain"), SimdWidth::Plain);
  try {
    choose_simd_width("avx3");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("ASSAY_SIMD 'avx3': must be plain, avx2 or avx512"), std::string::npos);
  }
}

}  // namespace
}  // namespace assay
