// What a detector with differentiable binarization learns from outlines of texts (Liao et al. 2019, arXiv:1911.08947):
// where the shrunk texts are, and how far from the border of a text each pixel near it is.
//
// An outline is shrunk and grown by D = area (1 - ratio^2) / perimeter, as Vatti's clipping algorithm does with round
// corners: the shrunk text is what lies at least D inside, the grown one what lies at most D outside.
#pragma once

#include <cstdint>
#include <vector>

#include "data/text_labels.h"

namespace assay {

struct TextTargetOptions {
  int64_t height = 0;
  int64_t width = 0;
  double shrink_ratio = 0.4;
  double min_text_size = 4;  // texts whose shorter side is less are ignored: too small to be found
  double threshold_min = 0.3;
  double threshold_max = 0.7;
};

// Maps of height x width, row by row.
struct TextTargets {
  std::vector<float> shrink_map;      // 1 in shrunk texts
  std::vector<float> shrink_mask;     // 0 in texts that are ignored
  std::vector<float> threshold_map;   // threshold_max at borders of texts, falling to threshold_min at distance D
  std::vector<float> threshold_mask;  // 1 in grown texts
};

double outline_area(const std::vector<TextPoint>& points);  // never negative
double outline_perimeter(const std::vector<TextPoint>& points);

// Texts that turn out to be ignored, because they are too small or nothing is left of them, are marked so.
TextTargets make_text_targets(std::vector<TextOutline>& texts, const TextTargetOptions& options);

}  // namespace assay
