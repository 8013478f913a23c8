// Whole data sets of pictures, as folders.
#pragma once

#include <functional>
#include <vector>

#include "base/files.h"

namespace assay {

using PictureCount = std::function<void(int64_t done, int64_t total)>;  // may throw, to stop

struct TextImageSet {
  std::vector<fs::path> fonts;  // DejaVu Sans, Sans Bold, Serif, Sans Mono and Noto Sans CJK
  int64_t num_train = 0;
  int64_t num_test = 0;
  uint64_t seed = 1;
};
// <folder>/{train,test}/NNNNNN.png, and {train,test}.txt with PP-OCR's labels.
void write_text_images(const TextImageSet& set, const fs::path& folder, const PictureCount& count);

struct FashionImageSet {
  fs::path idx_folder;    // of Fashion-MNIST, .gz
  int64_t num_train = 0;  // a class
  int64_t num_test = 0;
};
// <folder>/{train,test}/<class>/NNNNN.png and .jpg, by turns.
void write_fashion_images(const FashionImageSet& set, const fs::path& folder, const PictureCount& count);

}  // namespace assay
