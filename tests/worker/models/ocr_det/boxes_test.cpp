#include "models/ocr_det/boxes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"
#include "base/time.h"
#include "data/text_targets.h"

namespace assay::ocr_det {
namespace {

class Map {
 public:
  Map(int64_t height, int64_t width, float value = 0)
      : height_(height), width_(width), values_(static_cast<size_t>(height * width), value) {}
  float& at(int64_t x, int64_t y) { return values_[static_cast<size_t>(y * width_ + x)]; }
  void fill(int64_t left, int64_t top, int64_t right, int64_t bottom, float value) {
    for (int64_t y = top; y < bottom; ++y) {
      for (int64_t x = left; x < right; ++x) at(x, y) = value;
    }
  }
  std::vector<TextBox> boxes(const BoxOptions& options = {}) const {
    return find_boxes({.values = values_, .height = height_, .width = width_}, options);
  }
  std::vector<float>& values() { return values_; }

 private:
  int64_t height_, width_;
  std::vector<float> values_;
};

Rectangle upright(double left, double top, double right, double bottom) {
  return {.centre = {(left + right) / 2, (top + bottom) / 2},
          .along = {1, 0},
          .length = right - left,
          .width = bottom - top};
}

TEST(Boxes, GrowByAreaOverPerimeter) {
  Map map(20, 24);
  map.fill(4, 6, 14, 10, 0.9f);  // 10 x 4 pixels: 40 * 1.5 / 28
  map.at(14, 10) = 0.3f;         // not above the threshold
  const std::vector<TextBox> boxes = map.boxes();
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_NEAR(boxes[0].score, 0.9, 1e-6);
  const double grown = 60.0 / 28;
  const Polygon wanted = upright(4 - grown, 6 - grown, 14 + grown, 10 + grown).corners();
  EXPECT_NEAR(intersection_over_union(wanted, boxes[0].rectangle.corners()), 1, 1e-9);
  EXPECT_NEAR(boxes[0].rectangle.area(), (10 + 2 * grown) * (4 + 2 * grown), 1e-9);
}

TEST(Boxes, JoinRegionsAtCornersAndNotAcrossGaps) {
  Map map(20, 30);
  map.fill(2, 2, 8, 6, 1);
  map.fill(8, 6, 14, 10, 1);  // touches the first at a corner
  EXPECT_EQ(map.boxes().size(), 1u);
  map.fill(16, 2, 24, 8, 1);  // a column lies between
  EXPECT_EQ(map.boxes().size(), 2u);
}

TEST(Boxes, DropWeakAndSmallRegions) {
  Map map(20, 30);
  map.fill(2, 2, 10, 8, 0.5f);
  EXPECT_TRUE(map.boxes().empty()) << "a mean of 0.5";
  EXPECT_EQ(map.boxes({.box_threshold = 0.45}).size(), 1u);
  map.fill(2, 2, 10, 8, 0);
  map.fill(20, 10, 26, 11, 1);  // 6 x 1 pixels grow by 6 * 1.5 / 14 to a height of 2.29
  EXPECT_TRUE(map.boxes().empty());
  EXPECT_EQ(map.boxes({.min_size = 2}).size(), 1u);
}

TEST(Boxes, FindTurnedTexts) {
  std::mt19937 random(5);
  for (int i = 0; i < 20; ++i) {
    const double turned = std::uniform_real_distribution<double>(-0.5, 0.5)(random);
    const Rectangle text{.centre = {64, 48}, .along = {std::cos(turned), std::sin(turned)}, .length = 60, .width = 24};
    TextOutline outline{.points = text.corners(), .ignored = false};
    std::vector<TextOutline> texts = {outline};
    const TextTargets targets = make_text_targets(texts, {.height = 96, .width = 128});
    const std::vector<TextBox> boxes = find_boxes({.values = targets.shrink_map, .height = 96, .width = 128}, {});
    ASSERT_EQ(boxes.size(), 1u);
    EXPECT_GT(intersection_over_union(outline.points, boxes[0].rectangle.corners()), 0.8) << turned;
  }
}

TEST(Boxes, SurviveHostileMaps) {
  EXPECT_TRUE(Map(8, 8, std::nanf("")).boxes().empty());
  EXPECT_TRUE(Map(8, 8, -std::numeric_limits<float>::infinity()).boxes().empty());
  EXPECT_TRUE(Map(1, 1, 1).boxes().empty()) << "too small";
  const std::vector<TextBox> endless = Map(8, 8, std::numeric_limits<float>::infinity()).boxes();
  ASSERT_EQ(endless.size(), 1u);
  EXPECT_EQ(endless[0].score, 1);
  const std::vector<TextBox> all = Map(640, 640, 1).boxes();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_NEAR(all[0].rectangle.area(), 1120.0 * 1120, 1e-6);
  EXPECT_EQ(Map(1, 500, 1).boxes({.min_size = 1}).size(), 1u);
  EXPECT_EQ(Map(500, 1, 1).boxes({.min_size = 1}).size(), 1u);
  EXPECT_THROW(find_boxes({.values = {}, .height = 2, .width = 2}, {}), InternalError);
  EXPECT_THROW(find_boxes({.values = {}, .height = 0, .width = 0}, {}), InternalError);

  // 160,000 single pixels, and a comb that touches every row: no more than the candidates are looked at, once each.
  const Stopwatch watch;
  Map specks(800, 800);
  for (int64_t y = 0; y < 800; y += 2) {
    for (int64_t x = 0; x < 800; x += 2) specks.at(x, y) = 1;
  }
  EXPECT_TRUE(specks.boxes().empty());
  EXPECT_EQ(specks.boxes({.min_size = 0}).size(), 1000u);
  EXPECT_EQ(specks.boxes({.min_size = 0, .max_candidates = 7}).size(), 7u);
  Map comb(800, 800);
  for (int64_t x = 0; x < 800; x += 2) comb.fill(x, 0, x + 1, 800, 1);
  EXPECT_EQ(comb.boxes({.min_size = 0}).size(), 400u);
  std::mt19937 random(3);
  Map noise(800, 800);
  for (float& value : noise.values()) value = std::uniform_real_distribution<float>(0, 1)(random);
  EXPECT_LE(noise.boxes({.threshold = 0.7, .min_size = 0}).size(), 1000u);
  EXPECT_LT(watch.seconds(), 60);  // a second; what grows with the square of the regions takes minutes
}

TEST(Boxes, MatchOnceEach) {
  const auto text = [](const Rectangle& place, bool ignored = false) {
    return TextOutline{.points = place.corners(), .ignored = ignored};
  };
  const std::vector<TextOutline> texts = {text(upright(0, 0, 10, 10)), text(upright(20, 0, 40, 10)),
                                          text(upright(50, 0, 60, 10), true)};
  const std::vector<TextBox> boxes = {{upright(0, 0, 10, 9), 1},    // fits the first
                                      {upright(1, 0, 10, 10), 1},   // would, but it has one
                                      {upright(20, 0, 30, 10), 1},  // exactly half of the second is not enough
                                      {upright(52, 2, 58, 8), 1}};  // in the ignored one
  const Matches matches = match_boxes(texts, boxes);
  EXPECT_EQ(matches.num_texts, 2);
  EXPECT_EQ(matches.num_boxes, 3);
  EXPECT_EQ(matches.num_matched, 1);
  const Quality quality = quality_of(matches);
  EXPECT_DOUBLE_EQ(quality.precision, 1.0 / 3);
  EXPECT_DOUBLE_EQ(quality.recall, 1.0 / 2);
  EXPECT_DOUBLE_EQ(quality.hmean, 0.4);
  EXPECT_EQ(match_boxes({}, boxes).num_boxes, 4);
  EXPECT_EQ(match_boxes(texts, {}).num_texts, 2);
  EXPECT_EQ(quality_of(match_boxes({}, {})).hmean, 0);
}

}  // namespace
}  // namespace assay::ocr_det
