// JPEG and PNG images in memory: their size, and their pixels as RGB, or only the part that is needed. Files of
// others: a damaged one is a DataError, a huge one is refused before anything is allocated for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct ImageSize {
  int width = 0;
  int height = 0;
};

// Left and top are inside, right and bottom outside.
struct ImageBox {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
  double width() const { return right - left; }
  double height() const { return bottom - top; }
};

// Pixels of an image or of a part of it, perhaps at a fraction of its size.
struct Pixels {
  int width = 0;
  int height = 0;
  int left = 0;  // of this part, in pixels of the reduced image
  int top = 0;
  int reduction = 1;         // 1, 2, 4 or 8: the image's size over that of the reduced image
  std::vector<uint8_t> rgb;  // row by row, three bytes per pixel
};

class Image {
 public:
  // `bytes` must outlive the image; `where` names the file in errors. Reads the header only. Throws DataError.
  Image(std::string_view bytes, std::string where);
  int width() const { return width_; }
  int height() const { return height_; }

  // All pixels. Grey, palette and CMYK become RGB; transparency is dropped.
  Pixels read() const;
  // At least the pixels inside the box, which lies in the image, and a margin around it for a filter that is
  // `max_reduction` pixels wide. A JPEG may come at 1/2, 1/4 or 1/8 of its size, at most `max_reduction`: the decoder
  // then does a fraction of the work.
  Pixels read(const ImageBox& box, int max_reduction) const;

 private:
  std::string_view bytes_;
  std::string where_;
  bool is_jpeg_ = false;
  int width_ = 0;
  int height_ = 0;
};

}  // namespace assay
