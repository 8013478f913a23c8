// JPEG and PNG pictures in memory: their size, and their pixels as RGB, or only the part that is needed. Files of
// others: a damaged one is a DataError, a huge one is refused before anything is allocated for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct PictureSize {
  int width = 0;
  int height = 0;
};

// Left and top are inside, right and bottom outside.
struct PictureBox {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
  double width() const { return right - left; }
  double height() const { return bottom - top; }
};

// Pixels of a picture or of a part of it, perhaps at a fraction of its size.
struct Pixels {
  int width = 0;
  int height = 0;
  int left = 0;  // of this part, in pixels of the reduced picture
  int top = 0;
  int reduction = 1;         // 1, 2, 4 or 8: the picture's size over that of the reduced picture
  std::vector<uint8_t> rgb;  // row by row, three bytes a pixel
};

class Picture {
 public:
  // `bytes` must outlive the picture; `where` names the file in errors. Reads the header only. Throws DataError.
  Picture(std::string_view bytes, std::string where);
  int width() const { return width_; }
  int height() const { return height_; }

  // All pixels. Grey, palette and CMYK become RGB; transparency is dropped.
  Pixels read() const;
  // At least the pixels inside the box, which lies in the picture, and a margin around it for a filter that is
  // `max_reduction` pixels wide. A JPEG may come at 1/2, 1/4 or 1/8 of its size, at most `max_reduction`: the decoder
  // then does a fraction of the work.
  Pixels read(const PictureBox& box, int max_reduction) const;

 private:
  std::string_view bytes_;
  std::string where_;
  bool is_jpeg_ = false;
  int width_ = 0;
  int height_ = 0;
};

}  // namespace assay
