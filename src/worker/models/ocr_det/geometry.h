// Polygons in the plane, as far as detected texts need them. Coordinates are finite.
#pragma once

#include <vector>

#include "data/text_labels.h"

namespace assay::ocr_det {

using Polygon = std::vector<TextPoint>;

// The corners of the smallest convex polygon around the points, in one turning direction, none on a line between two
// others. Points that all lie on one line give its two ends, equal points one.
Polygon convex_hull(std::vector<TextPoint> points);

// Of any direction.
struct Rectangle {
  TextPoint centre;
  TextPoint along;  // of length 1: the direction of `length`
  double length = 0;
  double width = 0;

  Polygon corners() const;
  double area() const { return length * width; }
  double perimeter() const { return 2 * (length + width); }
  double shorter_side() const { return length < width ? length : width; }
  // Every side moved outwards.
  Rectangle grown_by(double distance) const;
};

// Of least area among those around the points: one side lies on a side of their hull. At least one point.
Rectangle smallest_rectangle(const std::vector<TextPoint>& points);

// The area that two polygons share. The first may be any without crossings, the second must be convex.
double shared_area(const Polygon& any, const Polygon& convex);

// Shared area to that of both together; 0 when both are empty.
double intersection_over_union(const Polygon& any, const Polygon& convex);

}  // namespace assay::ocr_det
