#include "models/ocr_det/boxes.h"

#include <algorithm>

#include "base/error.h"

namespace assay::ocr_det {

namespace {

constexpr double kMinOverlap = 0.5;  // of a box and a text, and of a box in an ignored text

// Walks over the connected regions of a map, diagonal neighbours included.
class Regions {
 public:
  Regions(const ProbabilityMap& map, double threshold) : map_(map), rows_(static_cast<size_t>(map.height)) {
    is_text_.resize(map.values.size());
    const auto limit = static_cast<float>(threshold);
    for (size_t i = 0; i < is_text_.size(); ++i) is_text_[i] = map.values[i] > limit;
  }

  struct Region {
    std::vector<TextPoint> outline;  // corners of the outermost pixels of every row
    double mean = 0;                 // probability
  };
  // False when there is none left.
  bool next(Region& region) {
    while (at_ < is_text_.size() && !is_text_[at_]) ++at_;
    if (at_ == is_text_.size()) return false;
    region = take(at_);
    return true;
  }

 private:
  struct Row {
    int64_t first = 0, last = -1;
  };

  Region take(size_t start) {
    double sum = 0;
    int64_t count = 0;
    const int64_t top = static_cast<int64_t>(start) / map_.width;  // it is met from above
    int64_t bottom = top;
    open_ = {start};
    is_text_[start] = false;
    while (!open_.empty()) {
      const auto pixel = static_cast<int64_t>(open_.back());
      open_.pop_back();
      const int64_t x = pixel % map_.width, y = pixel / map_.width;
      sum += std::min(1.0, static_cast<double>(map_.values[static_cast<size_t>(pixel)]));
      ++count;
      bottom = std::max(bottom, y);
      Row& row = rows_[static_cast<size_t>(y)];
      row = row.last < row.first ? Row{x, x} : Row{std::min(row.first, x), std::max(row.last, x)};
      open_neighbours(x, y);
    }
    Region region{.outline = {}, .mean = sum / static_cast<double>(count)};
    for (int64_t y = top; y <= bottom; ++y) {
      Row& row = rows_[static_cast<size_t>(y)];
      const auto left = static_cast<double>(row.first), right = static_cast<double>(row.last + 1);
      for (const double edge : {static_cast<double>(y), static_cast<double>(y + 1)}) {
        region.outline.push_back({left, edge});
        region.outline.push_back({right, edge});
      }
      row = {};
    }
    return region;
  }

  void open_neighbours(int64_t x, int64_t y) {
    for (int64_t v = std::max<int64_t>(0, y - 1); v <= std::min(map_.height - 1, y + 1); ++v) {
      for (int64_t u = std::max<int64_t>(0, x - 1); u <= std::min(map_.width - 1, x + 1); ++u) {
        const auto pixel = static_cast<size_t>(v * map_.width + u);
        if (!is_text_[pixel]) continue;
        is_text_[pixel] = false;
        open_.push_back(pixel);
      }
    }
  }

  const ProbabilityMap& map_;
  std::vector<char> is_text_;  // and not yet taken
  size_t at_ = 0;
  std::vector<size_t> open_;
  std::vector<Row> rows_;  // of the region at hand
};

}  // namespace

std::vector<TextBox> find_boxes(const ProbabilityMap& map, const BoxOptions& options) {
  ASSAY_CHECK(map.height > 0 && map.width > 0 &&
                  map.values.size() == static_cast<size_t>(map.height) * static_cast<size_t>(map.width),
              "a map of another size");
  std::vector<TextBox> boxes;
  Regions regions(map, options.threshold);
  Regions::Region region;
  for (int64_t i = 0; i < options.max_candidates && regions.next(region); ++i) {
    if (!(region.mean >= options.box_threshold)) continue;
    const Rectangle found = smallest_rectangle(region.outline);
    const Rectangle box = found.grown_by(found.area() * options.unclip_ratio / found.perimeter());
    if (box.shorter_side() >= options.min_size) boxes.push_back({box, region.mean});
  }
  return boxes;
}

Matches match_boxes(const std::vector<TextOutline>& texts, const std::vector<TextBox>& boxes) {
  std::vector<Polygon> open;  // boxes that count and have no text yet
  for (const TextBox& box : boxes) {
    const Polygon corners = box.rectangle.corners();
    const bool ignored = std::any_of(texts.begin(), texts.end(), [&](const TextOutline& text) {
      return text.ignored && shared_area(text.points, corners) > kMinOverlap * box.rectangle.area();
    });
    if (!ignored) open.push_back(corners);
  }
  Matches matches{.num_texts = 0, .num_boxes = static_cast<int64_t>(open.size()), .num_matched = 0};
  for (const TextOutline& text : texts) {
    if (text.ignored) continue;
    ++matches.num_texts;
    const auto fitting = std::find_if(open.begin(), open.end(), [&](const Polygon& box) {
      return intersection_over_union(text.points, box) > kMinOverlap;
    });
    if (fitting == open.end()) continue;
    open.erase(fitting);
    ++matches.num_matched;
  }
  return matches;
}

Quality quality_of(const Matches& matches) {
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  const auto matched = static_cast<double>(matches.num_matched);
  Quality quality;
  quality.precision = share(matched, static_cast<double>(matches.num_boxes));
  quality.recall = share(matched, static_cast<double>(matches.num_texts));
  quality.hmean = share(2 * quality.precision * quality.recall, quality.precision + quality.recall);
  return quality;
}

}  // namespace assay::ocr_det
