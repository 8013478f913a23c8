// Grey pictures as PNG and JPEG files.
#pragma once

#include <cstdint>
#include <span>

#include "base/files.h"

namespace assay {

struct GreyPicture {
  int width = 0;
  int height = 0;
  std::span<const uint8_t> pixels;  // row by row
};

// Both throw InfrastructureError naming the file.
void write_png(const fs::path& path, const GreyPicture& picture);
void write_jpeg(const fs::path& path, const GreyPicture& picture, int quality);

}  // namespace assay
