// From a map of probabilities to boxes around texts (Liao et al. 2019, section 3.5), and how good they are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/ocr_det/geometry.h"

namespace assay::ocr_det {

struct BoxOptions {
  double threshold = 0.3;         // pixels above it belong to a text
  double box_threshold = 0.6;     // mean probability of the pixels of a text, at least
  double unclip_ratio = 1.5;      // a box grows by area * ratio / perimeter, since the network finds shrunk texts
  double min_size = 4;            // pixels of a box's shorter side, at least
  int64_t max_candidates = 1000;  // connected regions looked at, from the top of the image
};

// Probabilities of pixels, row by row; pixel (0, 0) covers x from 0 to 1.
struct ProbabilityMap {
  std::span<const float> values;
  int64_t height = 0;
  int64_t width = 0;
};

struct TextBox {
  Rectangle rectangle;
  double score = 0;
};

// Takes time proportional to the pixels, and a little for each candidate. NaN is not text.
std::vector<TextBox> find_boxes(const ProbabilityMap& map, const BoxOptions& options);

// Counts that add up over images.
struct Matches {
  int64_t num_texts = 0;    // that count
  int64_t num_boxes = 0;    // that count
  int64_t num_matched = 0;  // texts that have a box
};

// As ICDAR 2015 does it: a box fits a text when their intersection over union is above 0.5, each fits once at most. A
// box of which more than half lies in an ignored text does not count.
Matches match_boxes(const std::vector<TextOutline>& texts, const std::vector<TextBox>& boxes);

struct Quality {
  double precision = 0;
  double recall = 0;
  double hmean = 0;  // their harmonic mean
};
// What has no denominator is 0.
Quality quality_of(const Matches& matches);

}  // namespace assay::ocr_det
