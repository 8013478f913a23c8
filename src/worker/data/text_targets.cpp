#include "data/text_targets.h"

#include <algorithm>
#include <cmath>

namespace assay {

namespace {

double segment_distance(const TextPoint& p, const TextPoint& a, const TextPoint& b) {
  const double dx = b.x - a.x;
  const double dy = b.y - a.y;
  const double squared = dx * dx + dy * dy;
  const double along = squared > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / squared, 0.0, 1.0) : 0.0;
  return std::hypot(p.x - a.x - along * dx, p.y - a.y - along * dy);
}

// Positive inside.
double signed_distance(const TextPoint& p, const std::vector<TextPoint>& points) {
  double nearest = INFINITY;
  bool inside = false;
  for (size_t i = 0; i < points.size(); ++i) {
    const TextPoint& a = points[i];
    const TextPoint& b = points[(i + 1) % points.size()];
    nearest = std::min(nearest, segment_distance(p, a, b));
    if ((a.y > p.y) != (b.y > p.y) && p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x) inside = !inside;
  }
  return inside ? nearest : -nearest;
}

// The shorter side of a quadrilateral; for other outlines that of the rectangle around it.
double text_size(const std::vector<TextPoint>& points) {
  const auto length = [&](size_t i) {
    const TextPoint& a = points[i];
    const TextPoint& b = points[(i + 1) % points.size()];
    return std::hypot(b.x - a.x, b.y - a.y);
  };
  if (points.size() == 4) return std::min(std::max(length(0), length(2)), std::max(length(1), length(3)));
  double left = INFINITY, right = -INFINITY, top = INFINITY, bottom = -INFINITY;
  for (const TextPoint& p : points) {
    left = std::min(left, p.x);
    right = std::max(right, p.x);
    top = std::min(top, p.y);
    bottom = std::max(bottom, p.y);
  }
  return std::min(right - left, bottom - top);
}

class TextTargetPainter {
 public:
  explicit TextTargetPainter(const TextTargetOptions& options) : options_(options) {
    const auto size = static_cast<size_t>(options.height * options.width);
    targets_.shrink_map.assign(size, 0.0F);
    targets_.shrink_mask.assign(size, 1.0F);
    targets_.threshold_map.assign(size, static_cast<float>(options.threshold_min));
    targets_.threshold_mask.assign(size, 0.0F);
  }

  void paint(TextOutline& text) {
    const double perimeter = outline_perimeter(text.points);
    const double area = outline_area(text.points);
    if (!(perimeter > 0) || area <= 0 || text_size(text.points) < options_.min_text_size) text.ignored = true;
    const double ratio = options_.shrink_ratio;
    const double reach = perimeter > 0 ? area * (1 - ratio * ratio) / perimeter : 0;
    if (text.ignored) return ignore(text);
    const double range = options_.threshold_max - options_.threshold_min;
    bool any_left = false;
    for_pixels_near(text, reach, [&](size_t at, double distance) {
      if (distance >= reach) {
        targets_.shrink_map[at] = 1;
        any_left = true;
      }
      if (distance < -reach) return;
      targets_.threshold_mask[at] = 1;
      const double value = options_.threshold_min + range * std::max(0.0, 1 - std::abs(distance) / reach);
      targets_.threshold_map[at] = std::max(targets_.threshold_map[at], static_cast<float>(value));
    });
    if (any_left) return;
    text.ignored = true;
    ignore(text);
  }

  TextTargets take() { return std::move(targets_); }

 private:
  void ignore(const TextOutline& text) {
    for_pixels_near(text, 0, [&](size_t at, double distance) {
      if (distance >= 0) targets_.shrink_mask[at] = 0;
    });
  }

  // Calls action(place in the maps, signed distance of the pixel's centre) for pixels at most so far outside.
  template <typename Action>
  void for_pixels_near(const TextOutline& text, double reach, Action action) {
    double left = INFINITY, right = -INFINITY, top = INFINITY, bottom = -INFINITY;
    for (const TextPoint& p : text.points) {
      left = std::min(left, p.x);
      right = std::max(right, p.x);
      top = std::min(top, p.y);
      bottom = std::max(bottom, p.y);
    }
    const auto first = [&](double low) { return std::max<int64_t>(0, static_cast<int64_t>(std::floor(low - reach))); };
    const auto last = [&](double high, int64_t size) {
      return std::min<int64_t>(size, static_cast<int64_t>(std::ceil(high + reach)));
    };
    for (int64_t y = first(top); y < last(bottom, options_.height); ++y) {
      for (int64_t x = first(left); x < last(right, options_.width); ++x) {
        const TextPoint centre{static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5};
        action(static_cast<size_t>(y * options_.width + x), signed_distance(centre, text.points));
      }
    }
  }

  TextTargetOptions options_;
  TextTargets targets_;
};

}  // namespace

double outline_area(const std::vector<TextPoint>& points) {
  double twice = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const TextPoint& a = points[i];
    const TextPoint& b = points[(i + 1) % points.size()];
    twice += a.x * b.y - b.x * a.y;
  }
  return std::abs(twice) / 2;
}

double outline_perimeter(const std::vector<TextPoint>& points) {
  double sum = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const TextPoint& a = points[i];
    const TextPoint& b = points[(i + 1) % points.size()];
    sum += std::hypot(b.x - a.x, b.y - a.y);
  }
  return sum;
}

TextTargets make_text_targets(std::vector<TextOutline>& texts, const TextTargetOptions& options) {
  TextTargetPainter painter(options);
  for (TextOutline& text : texts) painter.paint(text);
  return painter.take();
}

}  // namespace assay
