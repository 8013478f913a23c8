#include "data/resample.h"

#include <algorithm>
#include <cmath>

namespace assay {

namespace {

constexpr int kFractionBits = 22;  // of a weight: 255 times the sum of weights, one, fits into 31 bits

// For each output position the first input position and the weights of it and those that follow.
struct FilterTable {
  std::vector<int> first;
  std::vector<int> count;
  std::vector<int32_t> weights;  // `stride` each
  int stride = 0;
};

// `from` and `to` in input positions, of which there are `num_input`.
FilterTable make_filter(double from, double to, int num_input, int num_output) {
  const double scale = (to - from) / num_output;
  const double support =
      std::max(scale, 1.0);  // a triangle reaches one position to both sides, stretched when shrinking
  FilterTable table;
  table.stride = static_cast<int>(std::ceil(support)) * 2 + 1;
  table.weights.resize(static_cast<size_t>(table.stride) * static_cast<size_t>(num_output));
  std::vector<double> exact(static_cast<size_t>(table.stride));
  for (int i = 0; i < num_output; ++i) {
    const double centre = from + (i + 0.5) * scale;
    const int first = std::clamp(static_cast<int>(centre - support + 0.5), 0, num_input - 1);
    const int last = std::clamp(static_cast<int>(centre + support + 0.5), first + 1, num_input);
    const int count = std::min(last - first, table.stride);
    double sum = 0;
    for (int k = 0; k < count; ++k) {
      const double distance = std::abs((first + k - centre + 0.5) / support);
      exact[static_cast<size_t>(k)] = distance < 1 ? 1 - distance : 0;
      sum += exact[static_cast<size_t>(k)];
    }
    if (sum <= 0) {  // outside of the input: the nearest pixel
      exact[0] = 1;
      sum = 1;
    }
    int32_t* out = table.weights.data() + static_cast<size_t>(i) * static_cast<size_t>(table.stride);
    for (int k = 0; k < count; ++k) {
      out[k] = static_cast<int32_t>(std::lround(exact[static_cast<size_t>(k)] / sum * (1 << kFractionBits)));
    }
    table.first.push_back(first);
    table.count.push_back(count);
  }
  return table;
}

uint8_t rounded_byte(int32_t sum) {
  return static_cast<uint8_t>(std::clamp((sum + (1 << (kFractionBits - 1))) >> kFractionBits, 0, 255));
}

void filter_row(const uint8_t* in, const FilterTable& table, int num_output, uint8_t* out) {
  for (int x = 0; x < num_output; ++x) {
    const uint8_t* pixel = in + static_cast<ptrdiff_t>(table.first[static_cast<size_t>(x)]) * 3;
    const int32_t* weight = table.weights.data() + static_cast<ptrdiff_t>(x) * table.stride;
    int32_t red = 0;
    int32_t green = 0;
    int32_t blue = 0;
    for (int k = 0; k < table.count[static_cast<size_t>(x)]; ++k, pixel += 3) {
      red += weight[k] * pixel[0];
      green += weight[k] * pixel[1];
      blue += weight[k] * pixel[2];
    }
    out[x * 3] = rounded_byte(red);
    out[x * 3 + 1] = rounded_byte(green);
    out[x * 3 + 2] = rounded_byte(blue);
  }
}

}  // namespace

std::vector<uint8_t> resample(const Pixels& pixels, const ImageBox& box, const ResampleSize& size) {
  const auto along = [&](double position, int origin) { return position / pixels.reduction - origin; };
  const FilterTable columns =
      make_filter(along(box.left, pixels.left), along(box.right, pixels.left), pixels.width, size.width);
  const FilterTable lines =
      make_filter(along(box.top, pixels.top), along(box.bottom, pixels.top), pixels.height, size.height);
  const size_t stride = static_cast<size_t>(size.width) * 3;
  // Rows first, only those that are needed; then columns, all of a row at once.
  const int first_line = lines.first.front();
  const int num_lines = lines.first.back() + lines.count.back() - first_line;
  std::vector<uint8_t> narrow(stride * static_cast<size_t>(num_lines));
  for (int y = 0; y < num_lines; ++y) {
    filter_row(pixels.rgb.data() + static_cast<size_t>(first_line + y) * static_cast<size_t>(pixels.width) * 3, columns,
               size.width, narrow.data() + static_cast<size_t>(y) * stride);
  }
  std::vector<uint8_t> out(stride * static_cast<size_t>(size.height));
  std::vector<int32_t> sums(stride);
  for (int y = 0; y < size.height; ++y) {
    std::fill(sums.begin(), sums.end(), 0);
    const int32_t* weight = lines.weights.data() + static_cast<ptrdiff_t>(y) * lines.stride;
    for (int k = 0; k < lines.count[static_cast<size_t>(y)]; ++k) {
      const uint8_t* in =
          narrow.data() + static_cast<size_t>(lines.first[static_cast<size_t>(y)] + k - first_line) * stride;
      const int32_t w = weight[k];
      for (size_t x = 0; x < stride; ++x) sums[x] += w * in[x];
    }
    uint8_t* row = out.data() + static_cast<size_t>(y) * stride;
    for (size_t x = 0; x < stride; ++x) row[x] = rounded_byte(sums[x]);
  }
  return out;
}

}  // namespace assay
