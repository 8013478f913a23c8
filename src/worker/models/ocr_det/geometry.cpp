#include "models/ocr_det/geometry.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/text_targets.h"

namespace assay::ocr_det {

namespace {

// Twice the signed area of the triangle a, b, c: on which side of the line from a to b the point c lies.
double turn(const TextPoint& a, const TextPoint& b, const TextPoint& c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

double dot(const TextPoint& a, const TextPoint& b) { return a.x * b.x + a.y * b.y; }

double signed_area(const Polygon& polygon) {
  double twice = 0;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const TextPoint& a = polygon[i];
    const TextPoint& b = polygon[(i + 1) % polygon.size()];
    twice += a.x * b.y - b.x * a.y;
  }
  return twice / 2;
}

struct Range {
  double low = INFINITY, high = -INFINITY;
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double middle() const { return (low + high) / 2; }
};

// The rectangle around the points with a side in a direction of length 1.
Rectangle rectangle_along(const TextPoint& along, const Polygon& points) {
  const TextPoint across{-along.y, along.x};
  Range length, width;
  for (const TextPoint& p : points) {
    length.include(dot(p, along));
    width.include(dot(p, across));
  }
  return {.centre = {length.middle() * along.x + width.middle() * across.x,
                     length.middle() * along.y + width.middle() * across.y},
          .along = along,
          .length = length.high - length.low,
          .width = width.high - width.low};
}

// What of the polygon lies left of the line from a to b (Sutherland and Hodgman 1974).
Polygon left_of(const TextPoint& a, const TextPoint& b, const Polygon& polygon) {
  Polygon kept;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const TextPoint& from = polygon[i];
    const TextPoint& to = polygon[(i + 1) % polygon.size()];
    const double side_from = turn(a, b, from);
    const double side_to = turn(a, b, to);
    if (side_from >= 0) kept.push_back(from);
    if ((side_from < 0) == (side_to < 0)) continue;
    const double share = side_from / (side_from - side_to);
    kept.push_back({from.x + share * (to.x - from.x), from.y + share * (to.y - from.y)});
  }
  return kept;
}

}  // namespace

// Andrew's monotone chain: the lower side from left to right, then the upper one back.
Polygon convex_hull(std::vector<TextPoint> points) {
  const auto before = [](const TextPoint& a, const TextPoint& b) { return a.x != b.x ? a.x < b.x : a.y < b.y; };
  const auto same = [](const TextPoint& a, const TextPoint& b) { return a.x == b.x && a.y == b.y; };
  std::sort(points.begin(), points.end(), before);
  points.erase(std::unique(points.begin(), points.end(), same), points.end());
  if (points.size() < 3) return points;
  Polygon hull;
  const auto add_side = [&](auto begin, auto end) {
    const size_t first = hull.size();
    for (auto p = begin; p != end; ++p) {
      while (hull.size() >= first + 2 && turn(hull[hull.size() - 2], hull.back(), *p) <= 0) hull.pop_back();
      hull.push_back(*p);
    }
    hull.pop_back();  // it begins the other side
  };
  add_side(points.begin(), points.end());
  add_side(points.rbegin(), points.rend());
  return hull;
}

Polygon Rectangle::corners() const {
  const TextPoint across{-along.y, along.x};
  const auto corner = [&](double to_length, double to_width) {
    return TextPoint{centre.x + to_length * length / 2 * along.x + to_width * width / 2 * across.x,
                     centre.y + to_length * length / 2 * along.y + to_width * width / 2 * across.y};
  };
  return {corner(-1, -1), corner(1, -1), corner(1, 1), corner(-1, 1)};
}

Rectangle Rectangle::grown_by(double distance) const {
  return {.centre = centre, .along = along, .length = length + 2 * distance, .width = width + 2 * distance};
}

// Every side is tried with every corner, not with moving calipers: hulls of pixels have few corners.
Rectangle smallest_rectangle(const std::vector<TextPoint>& points) {
  ASSAY_CHECK(!points.empty(), "a rectangle around nothing");
  const Polygon hull = convex_hull(points);
  Rectangle smallest = rectangle_along({1, 0}, hull);
  for (size_t i = 0; i < hull.size() && hull.size() > 1; ++i) {
    const TextPoint& a = hull[i];
    const TextPoint& b = hull[(i + 1) % hull.size()];
    const double size = std::hypot(b.x - a.x, b.y - a.y);
    const Rectangle candidate = rectangle_along({(b.x - a.x) / size, (b.y - a.y) / size}, hull);
    if (candidate.area() < smallest.area()) smallest = candidate;
  }
  return smallest;
}

double shared_area(const Polygon& any, const Polygon& convex) {
  Polygon rest = any;
  const bool leftwards = signed_area(convex) > 0;
  for (size_t i = 0; i < convex.size() && !rest.empty(); ++i) {
    const TextPoint& a = convex[i];
    const TextPoint& b = convex[(i + 1) % convex.size()];
    rest = leftwards ? left_of(a, b, rest) : left_of(b, a, rest);
  }
  return std::abs(signed_area(rest));
}

double intersection_over_union(const Polygon& any, const Polygon& convex) {
  const double shared = shared_area(any, convex);
  const double both = outline_area(any) + outline_area(convex) - shared;
  return both > 0 ? shared / both : 0;
}

}  // namespace assay::ocr_det
