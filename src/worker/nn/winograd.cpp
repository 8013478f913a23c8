#include "nn/winograd.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "kernels/winograd_kernels.h"
#include "nn/fused.h"
#include "nn/linear.h"

namespace assay {

namespace {

constexpr int64_t kGrainTiles = 16;       // of a transform on one thread
constexpr int64_t kChunkBytes = 1 << 23;  // planes that are worked on together: about the share of the caches
constexpr int64_t kMinChunkTiles = 64;    // each product reads all of its filters, for few rows mostly for nothing
constexpr int64_t kGradientBytes = 1 << 25;

WinogradImages images_of(const torch::Tensor& x) { return {x.size(2), x.size(3), x.size(1)}; }

torch::Tensor like_channels_last(const torch::Tensor& x, at::IntArrayRef sizes) {
  return torch::empty(sizes, x.options(), torch::MemoryFormat::ChannelsLast);
}

// Tiles that are worked on together; by the sizes alone, so that sums do not depend on the number of threads.
template <typename T>
int64_t chunk_of(int64_t tiles, int64_t channels, int64_t chunk_bytes) {
  const int64_t bytes_of_tile = kWinogradPlanes * channels * static_cast<int64_t>(sizeof(T));
  const int64_t most = std::max(kMinChunkTiles, chunk_bytes / bytes_of_tile), count = (tiles + most - 1) / most;
  return (tiles + count - 1) / count;
}

// [36, out, in]
template <typename T>
torch::Tensor transformed_filters(const torch::Tensor& weight, bool turned) {
  const int64_t out = weight.size(0), in = weight.size(1);
  torch::Tensor planes = torch::empty({kWinogradPlanes, out, in}, weight.options());
  at::parallel_for(0, out, std::max<int64_t>(1, 4096 / in), [&](int64_t first, int64_t end) {
    run_winograd_filter<T>({weight.data_ptr<T>(), in, first, end, turned, planes.data_ptr<T>(), out * in});
  });
  return planes;
}

// The convolution of x with transformed filters: with each of them as a matrix [in, out], or transposed.
template <typename T>
torch::Tensor convolve(const torch::Tensor& x, const torch::Tensor& filters, bool transposed) {
  const int64_t in = x.size(1), out = filters.size(transposed ? 1 : 2);
  torch::Tensor y = like_channels_last(x, {x.size(0), out, x.size(2), x.size(3)});
  const WinogradImages from = images_of(x), to = images_of(y);
  const int64_t tiles = x.size(0) * from.tiles();
  const int64_t chunk = chunk_of<T>(tiles, in + out, kChunkBytes);
  const torch::Tensor zeros = torch::zeros({in}, x.options());
  const torch::Tensor inputs = torch::empty({kWinogradPlanes, chunk, in}, x.options());
  const torch::Tensor outputs = torch::empty({kWinogradPlanes, chunk, out}, x.options());
  T* a = inputs.data_ptr<T>();
  T* c = outputs.data_ptr<T>();
  for (int64_t first = 0; first < tiles; first += chunk) {
    const int64_t count = std::min(chunk, tiles - first);
    at::parallel_for(0, count, kGrainTiles, [&](int64_t begin, int64_t end) {
      run_winograd_patch<T>(
          {{from, first + begin, first + end, a + begin * in, chunk * in}, x.data_ptr<T>(), zeros.data_ptr<T>()});
    });
    at::parallel_for(0, kWinogradPlanes, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        multiply_into<T>({c + p * chunk * out, out}, {a + p * chunk * in, in},
                         {filters.data_ptr<T>() + p * in * out, transposed ? in : out, transposed}, {count, out, in},
                         false);
      }
    });
    at::parallel_for(0, count, kGrainTiles, [&](int64_t begin, int64_t end) {
      run_winograd_output<T>({{to, first + begin, first + end, c + begin * out, chunk * out}, y.data_ptr<T>()});
    });
  }
  return y;
}

template <typename T>
torch::Tensor weight_gradient_of(const torch::Tensor& dy, const torch::Tensor& x) {
  const int64_t in = x.size(1), out = dy.size(1);
  const WinogradImages from = images_of(x), to = images_of(dy);
  const int64_t tiles = x.size(0) * from.tiles();
  const int64_t chunk = chunk_of<T>(tiles, in + out, kGradientBytes);
  const torch::Tensor patches = torch::empty({kWinogradPlanes, chunk, in}, x.options());
  const torch::Tensor spread = torch::empty({kWinogradPlanes, chunk, out}, x.options());
  const torch::Tensor zeros = torch::zeros({std::max(in, out)}, x.options());
  const torch::Tensor planes = torch::empty({kWinogradPlanes, out, in}, x.options());
  T* a = spread.data_ptr<T>();
  T* b = patches.data_ptr<T>();
  for (int64_t first = 0; first < tiles; first += chunk) {
    const int64_t count = std::min(chunk, tiles - first);
    at::parallel_for(0, count, kGrainTiles, [&](int64_t begin, int64_t end) {
      run_winograd_patch<T>(
          {{from, first + begin, first + end, b + begin * in, chunk * in}, x.data_ptr<T>(), zeros.data_ptr<T>()});
      run_winograd_spread<T>(
          {{to, first + begin, first + end, a + begin * out, chunk * out}, dy.data_ptr<T>(), zeros.data_ptr<T>()});
    });
    at::parallel_for(0, kWinogradPlanes, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        multiply_into<T>({planes.data_ptr<T>() + p * out * in, in}, {a + p * chunk * out, out, true},
                         {b + p * chunk * in, in}, {out, in, count}, first > 0);
      }
    });
  }
  torch::Tensor dw = like_channels_last(x, {out, in, 3, 3});
  at::parallel_for(0, out, std::max<int64_t>(1, 4096 / in), [&](int64_t begin, int64_t end) {
    run_winograd_filter_gradient<T>({dw.data_ptr<T>(), in, begin, end, planes.data_ptr<T>(), out * in});
  });
  return dw;
}

}  // namespace

torch::Tensor winograd_forward(const torch::Tensor& x, const torch::Tensor& weight) {
  return is_float(x) ? convolve<float>(x, transformed_filters<float>(weight, false), true)
                     : convolve<double>(x, transformed_filters<double>(weight, false), true);
}

torch::Tensor winograd_input_gradient(const torch::Tensor& dy, const torch::Tensor& weight) {
  return is_float(dy) ? convolve<float>(dy, transformed_filters<float>(weight, true), false)
                      : convolve<double>(dy, transformed_filters<double>(weight, true), false);
}

torch::Tensor winograd_weight_gradient(const torch::Tensor& dy, const torch::Tensor& x) {
  return is_float(x) ? weight_gradient_of<float>(dy, x) : weight_gradient_of<double>(dy, x);
}

}  // namespace assay
