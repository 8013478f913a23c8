#include "models/ocr_det/geometry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "data/text_targets.h"

namespace assay::ocr_det {
namespace {

Polygon square(double left, double top, double side) {
  return {{left, top}, {left + side, top}, {left + side, top + side}, {left, top + side}};
}

bool is_inside(const TextPoint& p, const Polygon& polygon) {
  bool inside = false;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const TextPoint& a = polygon[i];
    const TextPoint& b = polygon[(i + 1) % polygon.size()];
    if ((a.y > p.y) != (b.y > p.y) && p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x) inside = !inside;
  }
  return inside;
}

Rectangle random_rectangle(std::mt19937& random) {
  std::uniform_real_distribution<double> place(20, 80), size(5, 50), angle(0, 2 * std::numbers::pi);
  const double turned = angle(random);
  return {.centre = {place(random), place(random)},
          .along = {std::cos(turned), std::sin(turned)},
          .length = size(random),
          .width = size(random)};
}

TEST(Geometry, ReducesHullsToCorners) {
  std::vector<TextPoint> points = square(0, 0, 4);
  points.insert(points.end(), {{2, 2}, {2, 0}, {4, 1}, {0, 3}, {0, 0}, {4, 4}, {1, 4}});
  const Polygon hull = convex_hull(points);
  EXPECT_EQ(hull.size(), 4u);
  EXPECT_DOUBLE_EQ(outline_area(hull), 16);
  EXPECT_EQ(convex_hull({{1, 1}, {3, 3}, {2, 2}, {1, 1}}).size(), 2u);
  EXPECT_EQ(convex_hull({{5, 5}, {5, 5}, {5, 5}}).size(), 1u);
  EXPECT_TRUE(convex_hull({}).empty());
}

TEST(Geometry, FindsSmallestRectangles) {
  const Rectangle diamond = smallest_rectangle({{0, 1}, {1, 0}, {2, 1}, {1, 2}});
  EXPECT_NEAR(diamond.area(), 2, 1e-12);
  EXPECT_NEAR(diamond.centre.x, 1, 1e-12);
  EXPECT_NEAR(diamond.shorter_side(), std::sqrt(2), 1e-12);
  EXPECT_NEAR(smallest_rectangle({{0, 0}, {2, 2}, {1, 1}}).area(), 0, 1e-12);
  EXPECT_NEAR(smallest_rectangle({{0, 0}, {3, 4}}).perimeter(), 10, 1e-12);
  EXPECT_EQ(smallest_rectangle({{7, 8}}).centre.y, 8);
  EXPECT_EQ(smallest_rectangle({{7, 8}}).area(), 0);
  const Rectangle grown = diamond.grown_by(0.5);
  EXPECT_NEAR(grown.area(), (std::sqrt(2) + 1) * (std::sqrt(2) + 1), 1e-12);
  EXPECT_NEAR(outline_area(grown.corners()), grown.area(), 1e-12);

  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const Rectangle wanted = random_rectangle(random);
    std::vector<TextPoint> points = wanted.corners();
    std::uniform_real_distribution<double> part(-0.5, 0.5);
    for (int k = 0; k < 20; ++k) {  // points inside change nothing
      const double a = part(random) * wanted.length, b = part(random) * wanted.width;
      points.push_back({wanted.centre.x + a * wanted.along.x - b * wanted.along.y,
                        wanted.centre.y + a * wanted.along.y + b * wanted.along.x});
    }
    const Rectangle found = smallest_rectangle(points);
    EXPECT_NEAR(found.area(), wanted.area(), 1e-9);
    EXPECT_NEAR(intersection_over_union(found.corners(), wanted.corners()), 1, 1e-9);
  }
}

TEST(Geometry, ComputesSharedAreasByHand) {
  const Polygon unit = square(0, 0, 1);
  EXPECT_DOUBLE_EQ(shared_area(unit, square(0.5, 0.5, 1)), 0.25);
  EXPECT_DOUBLE_EQ(intersection_over_union(unit, square(0.5, 0.5, 1)), 0.25 / 1.75);
  EXPECT_DOUBLE_EQ(shared_area(unit, unit), 1);
  EXPECT_DOUBLE_EQ(shared_area(unit, square(1, 0, 1)), 0) << "they touch";
  EXPECT_DOUBLE_EQ(shared_area(unit, square(3, 3, 1)), 0);
  EXPECT_DOUBLE_EQ(shared_area(unit, square(-1, -1, 4)), 1);
  EXPECT_DOUBLE_EQ(shared_area(square(-1, -1, 4), unit), 1);
  // A diamond cuts the corners off a square: 4 - 4 * 0.5.
  EXPECT_DOUBLE_EQ(shared_area(square(0, 0, 2), {{1, 0}, {2, 1}, {1, 2}, {0, 1}}), 2);
  // Turning directions do not matter.
  EXPECT_DOUBLE_EQ(shared_area({{0, 0}, {0, 1}, {1, 1}, {1, 0}}, {{0.5, 0.5}, {0.5, 1.5}, {1.5, 1.5}, {1.5, 0.5}}),
                   0.25);
  // An L, which is not convex.
  const Polygon corner = {{0, 0}, {2, 0}, {2, 1}, {1, 1}, {1, 2}, {0, 2}};
  EXPECT_DOUBLE_EQ(shared_area(corner, square(0.5, 0.5, 1)), 0.75);
  // Nothing at all.
  EXPECT_EQ(intersection_over_union({}, {}), 0);
  EXPECT_EQ(intersection_over_union({{1, 1}, {1, 1}, {1, 1}, {1, 1}}, square(0, 0, 2)), 0);
  EXPECT_EQ(intersection_over_union(unit, {{1, 1}, {1, 1}, {1, 1}, {1, 1}}), 0);
}

// By counting points of a fine grid.
TEST(Geometry, ComputesSharedAreasAsCountingDoes) {
  std::mt19937 random(2);
  constexpr double kStep = 0.25;
  for (int i = 0; i < 60; ++i) {
    const Polygon a = random_rectangle(random).corners(), b = random_rectangle(random).corners();
    double both = 0, either = 0;
    for (double y = kStep / 2; y < 130; y += kStep) {
      for (double x = kStep / 2; x < 130; x += kStep) {
        const bool in_a = is_inside({x - 15, y - 15}, a), in_b = is_inside({x - 15, y - 15}, b);
        both += in_a && in_b ? 1 : 0;
        either += in_a || in_b ? 1 : 0;
      }
    }
    EXPECT_NEAR(shared_area(a, b), both * kStep * kStep, 4) << i;
    EXPECT_NEAR(intersection_over_union(a, b), both / either, 0.01) << i;
    EXPECT_NEAR(shared_area(a, b), shared_area(b, a), 1e-9);
  }
}

}  // namespace
}  // namespace assay::ocr_det
