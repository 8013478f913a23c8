// Label files of text detection, in PP-OCR's format: one line per image, its path, a tab, and a JSON list of texts with
// their outlines: img/1.png<TAB>[{"transcription": "word", "points": [[x, y], ...]}, ...]
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct TextPoint {
  double x = 0;
  double y = 0;
};

struct TextOutline {
  std::vector<TextPoint> points;  // of a polygon without crossings; pixel (0, 0) covers x from 0 to 1
  bool ignored = false;           // marked "###" or "*": neither text nor background
};

struct TextLabels {
  std::string path;  // of the image, relative to the label file
  std::vector<TextOutline> texts;
};

// Throws DataError naming `where` and the line.
std::vector<TextLabels> parse_text_labels(std::string_view text, const std::string& where);

}  // namespace assay
