#include "nn/patches.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>

namespace assay {

namespace {

// One row of a patch: K pixels that stand side by side in the image too, less those over its edge.
struct PatchRow {
  int64_t in_image;  // the first pixel, in its row of the image
  int64_t in_patch;  // the same, in its row of the patch
  int64_t count;     // pixels
};
PatchRow row_at(int64_t x, int64_t width, const PatchShape& shape) {
  const int64_t begin = x * shape.stride - shape.kernel / 2;
  const int64_t first = std::max<int64_t>(begin, 0), last = std::min(begin + shape.kernel, width);
  return {first, first - begin, last - first};
}

int64_t places(int64_t extent, int64_t stride) { return (extent + stride - 1) / stride; }

}  // namespace

torch::Tensor take_patches(const torch::Tensor& x, const PatchShape& shape) {
  const int64_t channels = x.size(1), height = x.size(2), width = x.size(3), kernel = shape.kernel;
  const int64_t rows = places(height, shape.stride), columns = places(width, shape.stride);
  torch::Tensor patches = torch::empty({x.size(0), rows, columns, kernel * kernel * channels}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "take_patches", [&] {
    const scalar_t* image = x.data_ptr<scalar_t>();
    scalar_t* to = patches.data_ptr<scalar_t>();
    at::parallel_for(0, x.size(0) * rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t top = i % rows * shape.stride - kernel / 2, first_row = i / rows * height;
        for (int64_t column = 0; column < columns; ++column) {
          const PatchRow row = row_at(column, width, shape);
          scalar_t* patch = to + (i * columns + column) * kernel * kernel * channels;
          for (int64_t k = 0; k < kernel; ++k, patch += kernel * channels) {
            const int64_t y = top + k;
            if (y < 0 || y >= height) {
              std::fill_n(patch, kernel * channels, scalar_t(0));
              continue;
            }
            scalar_t* seen = std::fill_n(patch, row.in_patch * channels, scalar_t(0));
            seen = std::copy_n(image + ((first_row + y) * width + row.in_image) * channels, row.count * channels, seen);
            std::fill(seen, patch + kernel * channels, scalar_t(0));
          }
        }
      }
    });
  });
  return patches;
}

torch::Tensor sum_patches(const torch::Tensor& patches, const torch::Tensor& like, const PatchShape& shape) {
  const int64_t channels = like.size(1), height = like.size(2), width = like.size(3), kernel = shape.kernel;
  const int64_t rows = patches.size(1), columns = patches.size(2);
  torch::Tensor sums = torch::empty_like(like, torch::MemoryFormat::ChannelsLast);
  AT_DISPATCH_FLOATING_TYPES(like.scalar_type(), "sum_patches", [&] {
    const scalar_t* from = patches.data_ptr<scalar_t>();
    scalar_t* image = sums.data_ptr<scalar_t>();
    at::parallel_for(0, like.size(0) * height, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t y = i % height, first_position = i / height * rows;
        scalar_t* sum = image + i * width * channels;
        std::fill_n(sum, width * channels, scalar_t(0));
        for (int64_t k = 0; k < kernel; ++k) {
          const int64_t above = y + kernel / 2 - k;  // where the patch's place is, in the image
          if (above < 0 || above % shape.stride != 0 || above / shape.stride >= rows) continue;
          const int64_t position = (first_position + above / shape.stride) * columns;
          for (int64_t column = 0; column < columns; ++column) {
            const PatchRow row = row_at(column, width, shape);
            const scalar_t* seen = from + (((position + column) * kernel + k) * kernel + row.in_patch) * channels;
            scalar_t* to = sum + row.in_image * channels;
            for (int64_t c = 0; c < row.count * channels; ++c) to[c] += seen[c];
          }
        }
      }
    });
  });
  return sums;
}

}  // namespace assay
