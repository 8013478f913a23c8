#include "report/decimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace assay;

TEST(Decimate, KeepsShortCurves) {
  EXPECT_EQ(decimate({1, 2, 3}, 10), (std::vector<size_t>{0, 1, 2}));
  EXPECT_TRUE(decimate({}, 10).empty());
}

TEST(Decimate, KeepsEndsExtremesAndBrokenPoints) {
  std::vector<double> y(100'000);
  for (size_t i = 0; i < y.size(); ++i) y[i] = std::sin(static_cast<double>(i) * 0.01);
  y[12'345] = 50;
  y[67'890] = -50;
  y[55'555] = std::nan("");
  y[77'777] = std::numeric_limits<double>::infinity();
  const std::vector<size_t> kept = decimate(y, 1000);
  EXPECT_LE(kept.size(), 1000u);
  EXPECT_GT(kept.size(), 600u);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  EXPECT_EQ(std::adjacent_find(kept.begin(), kept.end()), kept.end());
  for (size_t wanted : {size_t{0}, size_t{12'345}, size_t{55'555}, size_t{67'890}, size_t{77'777}, y.size() - 1}) {
    EXPECT_TRUE(std::binary_search(kept.begin(), kept.end(), wanted)) << wanted;
  }
}

TEST(Decimate, KeepsTheEnvelope) {
  std::vector<double> y(9'002);
  uint32_t state = 7;
  for (double& value : y) {
    state = state * 1664525 + 1013904223;
    value = state / 4294967296.0;
  }
  const std::vector<size_t> kept = decimate(y, 302);  // 100 buckets of 90 points between the two ends
  for (size_t bucket = 0; bucket < 100; ++bucket) {
    const auto begin = y.begin() + 1 + static_cast<std::ptrdiff_t>(90 * bucket);
    const auto low = static_cast<size_t>(std::min_element(begin, begin + 90) - y.begin());
    const auto high = static_cast<size_t>(std::max_element(begin, begin + 90) - y.begin());
    EXPECT_TRUE(std::binary_search(kept.begin(), kept.end(), low));
    EXPECT_TRUE(std::binary_search(kept.begin(), kept.end(), high));
  }
}

TEST(Decimate, ReportsTheOriginalNumberOfPoints) {
  Curve curve{.name = "train.loss", .stage = "TRAIN", .unit = "", .x = {}, .y = {}, .label = "", .source = ""};
  for (int i = 0; i < 5000; ++i) {
    curve.x.push_back(i);
    curve.y.push_back(i % 7);
  }
  const Curve thin = decimated(curve, 100);
  EXPECT_LE(thin.x.size(), 100u);
  EXPECT_EQ(thin.x.size(), thin.y.size());
  EXPECT_EQ(thin.total_points, 5000u);
  EXPECT_EQ(decimated(thin, 50).total_points, 5000u);  // thinned again: still the first number
  EXPECT_EQ(decimated(curve, 5000).total_points, 0u);
}

TEST(Decimate, CutsUnequalListsToTheShorter) {
  const Curve curve{.name = "a", .stage = "", .unit = "", .x = {1, 2, 3}, .y = {1}, .label = "", .source = ""};
  EXPECT_EQ(decimated(curve, 100).x, std::vector<double>{1});
}
