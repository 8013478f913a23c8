// Images at another size: bilinear, and when made smaller, averaged over all pixels that fall together (as PIL does).
#pragma once

#include <cstdint>
#include <vector>

#include "data/image.h"

namespace assay {

struct ResampleSize {
  int width = 0;
  int height = 0;
};

// What is inside `box`, in pixels of the whole image, as `size` pixels; rgb, row by row. Near its edges the filter
// sees what is outside the box, where `pixels` has it.
std::vector<uint8_t> resample(const Pixels& pixels, const ImageBox& box, const ResampleSize& size);

}  // namespace assay
