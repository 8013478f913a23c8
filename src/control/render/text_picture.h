// Pictures of texts on coloured grounds, with the exact place of every text. A function of the seed and the number of
// the picture, for the same versions of pango, cairo and FreeType.
#pragma once

#include <cairo.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "render/fonts.h"

namespace assay {

struct PicturePoint {
  double x = 0;
  double y = 0;
};

struct PlacedText {
  std::string text;
  std::array<PicturePoint, 4> corners;  // clockwise from the text's own top left; pixel (0, 0) covers x from 0 to 1
};

struct TextPicture {
  struct Destroy {
    void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
  };
  std::unique_ptr<cairo_surface_t, Destroy> surface;
  std::vector<PlacedText> texts;
};

struct TextPictureOptions {
  int width = 320;
  int height = 320;
  uint64_t seed = 1;
};

TextPicture draw_text_picture(const Fonts& fonts, const TextPictureOptions& options, uint64_t number);

// [{"transcription": ..., "points": [[x, y], ...]}, ...], as label files of text detection have it.
std::string labels_json(const std::vector<PlacedText>& texts);

}  // namespace assay
