// PNG by libpng. For image.cpp and writers of PNG files.
#pragma once

#include <string>
#include <string_view>

#include "data/image.h"

namespace assay {

ImageSize png_size(std::string_view bytes, const std::string& where);
Pixels read_png(std::string_view bytes, const std::string& where);

}  // namespace assay
