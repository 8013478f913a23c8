#include "data/image.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "data/jpeg.h"
#include "data/png_file.h"

namespace assay {

namespace {

constexpr int64_t kMaxPixels = 100'000'000;  // 300 MB as RGB; a file of a few bytes can claim far more

int largest_reduction(int limit) { return limit >= 8 ? 8 : limit >= 4 ? 4 : limit >= 2 ? 2 : 1; }

}  // namespace

Image::Image(std::string_view bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {
  is_jpeg_ = bytes.starts_with("\xFF\xD8");
  if (!is_jpeg_ && !bytes.starts_with("\x89PNG")) {
    throw DataError(fmt::format("{}: neither a JPEG nor a PNG file{}", where_, bytes.empty() ? ": it is empty" : ""));
  }
  const ImageSize size = is_jpeg_ ? jpeg_size(bytes_, where_) : png_size(bytes_, where_);
  width_ = size.width;
  height_ = size.height;
  if (width_ < 1 || height_ < 1 || int64_t{width_} * height_ > kMaxPixels) {
    throw DataError(fmt::format("{}: an image of {} x {} pixels; at most {} million pixels are read", where_, width_,
                                height_, kMaxPixels / 1'000'000));
  }
}

Pixels Image::read() const {
  if (!is_jpeg_) return read_png(bytes_, where_);
  return read_jpeg(bytes_, {.reduction = 1, .left = 0, .top = 0, .right = width_, .bottom = height_}, where_);
}

Pixels Image::read(const ImageBox& box, int max_reduction) const {
  if (!is_jpeg_) return read_png(bytes_, where_);
  // Colours may have half the resolution, so the decoder mixes neighbours at the edges of a part: kept out by a margin.
  constexpr int kEdge = 8;
  const int reduction = largest_reduction(max_reduction);
  const int margin = max_reduction / reduction + 1 + kEdge;
  return read_jpeg(bytes_,
                   {.reduction = reduction,
                    .left = static_cast<int>(std::floor(box.left / reduction)) - margin,
                    .top = static_cast<int>(std::floor(box.top / reduction)) - margin,
                    .right = static_cast<int>(std::ceil(box.right / reduction)) + margin,
                    .bottom = static_cast<int>(std::ceil(box.bottom / reduction)) + margin},
                   where_);
}

}  // namespace assay
