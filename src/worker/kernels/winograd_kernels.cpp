#include "kernels/winograd_kernels.h"

#include <algorithm>

namespace assay {

namespace {

// One-dimensional transforms; applied to rows and then to columns. The points of interpolation are 0, 1, -1, 2, -2.
struct PatchTransform {  // B^T
  static constexpr int kIn = 6, kOut = 6;
  template <typename V>
  ASSAY_INLINE static void run(const V (&d)[6], V (&t)[6]) {
    const V sum = d[4] - d[2] * 4, odd = d[3] - d[1] * 4;
    const V even = d[4] - d[2], twice = (d[3] - d[1]) * 2;
    t[0] = d[0] * 4 - d[2] * 5 + d[4];
    t[1] = sum + odd;
    t[2] = sum - odd;
    t[3] = even + twice;
    t[4] = even - twice;
    t[5] = d[1] * 4 - d[3] * 5 + d[5];
  }
};
struct OutputTransform {  // A^T
  static constexpr int kIn = 6, kOut = 4;
  template <typename V>
  ASSAY_INLINE static void run(const V (&m)[6], V (&y)[4]) {
    const V sum1 = m[1] + m[2], sum2 = m[3] + m[4], difference1 = m[1] - m[2], difference2 = m[3] - m[4];
    y[0] = m[0] + sum1 + sum2;
    y[1] = difference1 + difference2 * 2;
    y[2] = sum1 + sum2 * 4;
    y[3] = difference1 + difference2 * 8 + m[5];
  }
};
struct SpreadTransform {  // A
  static constexpr int kIn = 4, kOut = 6;
  template <typename V>
  ASSAY_INLINE static void run(const V (&y)[4], V (&m)[6]) {
    const V even = y[0] + y[2], odd = y[1] + y[3];
    const V even4 = y[0] + y[2] * 4, odd4 = y[1] * 2 + y[3] * 8;
    m[0] = y[0];
    m[1] = even + odd;
    m[2] = even - odd;
    m[3] = even4 + odd4;
    m[4] = even4 - odd4;
    m[5] = y[3];
  }
};
struct FilterTransform {  // G
  static constexpr int kIn = 3, kOut = 6;
  template <typename V>
  ASSAY_INLINE static void run(const V (&g)[3], V (&u)[6]) {
    using T = std::remove_cvref_t<decltype(g[0][0])>;
    const V ends = (g[0] + g[2]) * T(-1.0 / 6), wide = g[0] * T(1.0 / 24) + g[2] * T(1.0 / 6);
    const V middle = g[1] * T(1.0 / 6);
    u[0] = g[0] * T(0.25);
    u[1] = ends - middle;
    u[2] = ends + middle;
    u[3] = wide + middle * T(0.5);
    u[4] = wide - middle * T(0.5);
    u[5] = g[2];
  }
};
struct FilterGradientTransform {  // G^T
  static constexpr int kIn = 6, kOut = 3;
  template <typename V>
  ASSAY_INLINE static void run(const V (&u)[6], V (&g)[3]) {
    using T = std::remove_cvref_t<decltype(u[0][0])>;
    const V near = (u[1] + u[2]) * T(-1.0 / 6), far = u[3] + u[4];
    g[0] = u[0] * T(0.25) + near + far * T(1.0 / 24);
    g[1] = (u[2] - u[1]) * T(1.0 / 6) + (u[3] - u[4]) * T(1.0 / 12);
    g[2] = near + far * T(1.0 / 6) + u[5];
  }
};

// out = X in X^T: load(i, j) gives the inputs, store(i, j, value) takes the results.
template <typename Transform, typename V, typename Load, typename Store>
ASSAY_INLINE void transform(Load&& load, Store&& store) {
  constexpr int kIn = Transform::kIn, kOut = Transform::kOut;
  V rows[kIn][kOut];
  for (int i = 0; i < kIn; ++i) {
    V in[kIn];
    for (int j = 0; j < kIn; ++j) in[j] = load(i, j);
    Transform::run(in, rows[i]);
  }
  for (int j = 0; j < kOut; ++j) {
    V in[kIn], out[kOut];
    for (int i = 0; i < kIn; ++i) in[i] = rows[i][j];
    Transform::run(in, out);
    for (int i = 0; i < kOut; ++i) store(i, j, out[i]);
  }
}

struct TilePosition {
  int64_t image, row, column;  // row and column of the first output
};
ASSAY_INLINE TilePosition position_of(const WinogradImages& images, int64_t tile) {
  const int64_t inside = tile % images.tiles();
  return {tile / images.tiles(), inside / images.across() * kWinogradTile, inside % images.across() * kWinogradTile};
}

// Where the pixels of a square begin in memory; `outside` for those that the image does not have.
template <int Size, typename T>
ASSAY_INLINE void pixels_of(const WinogradImages& images, T* data, const TilePosition& position, int64_t margin,
                            T* outside, T* (&at)[Size][Size]) {
  T* image = data + position.image * images.height * images.width * images.channels;
  for (int i = 0; i < Size; ++i) {
    const int64_t row = position.row + i - margin;
    for (int j = 0; j < Size; ++j) {
      const int64_t column = position.column + j - margin;
      const bool inside = row >= 0 && row < images.height && column >= 0 && column < images.width;
      at[i][j] = inside ? image + (row * images.width + column) * images.channels : outside;
    }
  }
}

template <typename T, int Bytes, typename Transform>
ASSAY_INLINE void tiles_to_planes(const WinogradTiles<T>& tiles, const T* data, const T* zeros, int64_t margin) {
  using V = simd::Vec<T, Bytes>;
  const int64_t channels = tiles.images.channels;
  const T* at[Transform::kIn][Transform::kIn];
  for (int64_t tile = tiles.first; tile < tiles.end; ++tile) {
    pixels_of(tiles.images, data, position_of(tiles.images, tile), margin, zeros, at);
    T* to = tiles.planes + (tile - tiles.first) * channels;
    simd::each_vector<T, Bytes>(
        channels, [&](int64_t c, int64_t n) __attribute__((always_inline)) {
          transform<Transform, V>(
              [&](int i, int j) __attribute__((always_inline)) { return simd::load_up_to<V>(at[i][j] + c, n); },
              [&](int i, int j, V value) __attribute__((always_inline)) {
                simd::store_up_to(to + (i * 6 + j) * tiles.plane_stride + c, value, n);
              });
        });
  }
}

template <typename T, int Bytes>
ASSAY_INLINE void winograd_patch(const WinogradPatchArgs<T>& p) {
  tiles_to_planes<T, Bytes, PatchTransform>(p.tiles, p.x, p.zeros, 1);
}

template <typename T, int Bytes>
ASSAY_INLINE void winograd_spread(const WinogradSpreadArgs<T>& p) {
  tiles_to_planes<T, Bytes, SpreadTransform>(p.tiles, p.dy, p.zeros, 0);
}

template <typename T, int Bytes>
ASSAY_INLINE void winograd_output(const WinogradOutputArgs<T>& p) {
  using V = simd::Vec<T, Bytes>;
  const int64_t channels = p.tiles.images.channels;
  T* at[4][4];
  for (int64_t tile = p.tiles.first; tile < p.tiles.end; ++tile) {
    pixels_of(p.tiles.images, p.y, position_of(p.tiles.images, tile), 0, static_cast<T*>(nullptr), at);
    const T* from = p.tiles.planes + (tile - p.tiles.first) * channels;
    simd::each_vector<T, Bytes>(
        channels, [&](int64_t c, int64_t n) __attribute__((always_inline)) {
          transform<OutputTransform, V>(
              [&](int i, int j) __attribute__((always_inline)) {
                return simd::load_up_to<V>(from + (i * 6 + j) * p.tiles.plane_stride + c, n);
              },
              [&](int i, int j, V value) __attribute__((always_inline)) {
                if (at[i][j]) simd::store_up_to(at[i][j] + c, value, n);
              });
        });
  }
}

template <typename T, int Bytes>
ASSAY_INLINE void winograd_filter(const WinogradFilterArgs<T>& p) {
  using V = simd::Vec<T, Bytes>;
  for (int64_t filter = p.first; filter < p.end; ++filter) {
    const T* from = p.weight + filter * 9 * p.in;
    T* to = p.planes + filter * p.in;
    simd::each_vector<T, Bytes>(
        p.in, [&](int64_t c, int64_t n) __attribute__((always_inline)) {
          transform<FilterTransform, V>(
              [&](int i, int j) __attribute__((always_inline)) {
                const int tap = i * 3 + j;
                return simd::load_up_to<V>(from + (p.turned ? 8 - tap : tap) * p.in + c, n);
              },
              [&](int i, int j, V value) __attribute__((always_inline)) {
                simd::store_up_to(to + (i * 6 + j) * p.plane_stride + c, value, n);
              });
        });
  }
}

template <typename T, int Bytes>
ASSAY_INLINE void winograd_filter_gradient(const WinogradFilterGradientArgs<T>& p) {
  using V = simd::Vec<T, Bytes>;
  for (int64_t filter = p.first; filter < p.end; ++filter) {
    const T* from = p.planes + filter * p.in;
    T* to = p.weight + filter * 9 * p.in;
    simd::each_vector<T, Bytes>(
        p.in, [&](int64_t c, int64_t n) __attribute__((always_inline)) {
          transform<FilterGradientTransform, V>(
              [&](int i, int j) __attribute__((always_inline)) {
                return simd::load_up_to<V>(from + (i * 6 + j) * p.plane_stride + c, n);
              },
              [&](int i, int j, V value)
                  __attribute__((always_inline)) { simd::store_up_to(to + (i * 3 + j) * p.in + c, value, n); });
        });
  }
}

}  // namespace

ASSAY_SIMD_KERNEL(winograd_patch, WinogradPatchArgs)
ASSAY_SIMD_KERNEL(winograd_spread, WinogradSpreadArgs)
ASSAY_SIMD_KERNEL(winograd_output, WinogradOutputArgs)
ASSAY_SIMD_KERNEL(winograd_filter, WinogradFilterArgs)
ASSAY_SIMD_KERNEL(winograd_filter_gradient, WinogradFilterGradientArgs)

template void run_winograd_patch(const WinogradPatchArgs<float>&);
template void run_winograd_patch(const WinogradPatchArgs<double>&);
template void run_winograd_spread(const WinogradSpreadArgs<float>&);
template void run_winograd_spread(const WinogradSpreadArgs<double>&);
template void run_winograd_output(const WinogradOutputArgs<float>&);
template void run_winograd_output(const WinogradOutputArgs<double>&);
template void run_winograd_filter(const WinogradFilterArgs<float>&);
template void run_winograd_filter(const WinogradFilterArgs<double>&);
template void run_winograd_filter_gradient(const WinogradFilterGradientArgs<float>&);
template void run_winograd_filter_gradient(const WinogradFilterGradientArgs<double>&);

}  // namespace assay
