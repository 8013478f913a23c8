// PNG by libpng. For picture.cpp and writers of PNG files.
#pragma once

#include <string>
#include <string_view>

#include "data/picture.h"

namespace assay {

PictureSize png_size(std::string_view bytes, const std::string& where);
Pixels read_png(std::string_view bytes, const std::string& where);

}  // namespace assay
