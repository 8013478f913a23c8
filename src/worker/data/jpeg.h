// JPEG by libjpeg-turbo. For image.cpp only.
#pragma once

#include <string>
#include <string_view>

#include "data/image.h"

namespace assay {

ImageSize jpeg_size(std::string_view bytes, const std::string& where);
// The part of the reduced image between these pixels, or more.
struct JpegPart {
  int reduction = 1;
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
};
Pixels read_jpeg(std::string_view bytes, const JpegPart& part, const std::string& where);

}  // namespace assay
