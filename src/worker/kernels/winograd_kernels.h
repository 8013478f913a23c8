// The transforms of winograd.h, a range of tiles or filters each, one copy for each vector width.
//
// A tile's 36 numbers per channel go to (or come from) 36 planes of rows [channels]; plane p of row r is at
// planes + p * plane_stride + r * channels.
#pragma once

#include <cstdint>

#include "kernels/simd.h"

namespace assay {

inline constexpr int64_t kWinogradTile = 4;     // outputs of a tile, each way
inline constexpr int64_t kWinogradPatch = 6;    // inputs of a tile, each way
inline constexpr int64_t kWinogradPlanes = 36;  // products of a tile and channel

// Images in memory: [height, width, channels] each. Tile t is number t % (down * across) of image t / (down * across).
struct WinogradImages {
  int64_t height, width, channels;
  int64_t down() const { return (height + kWinogradTile - 1) / kWinogradTile; }
  int64_t across() const { return (width + kWinogradTile - 1) / kWinogradTile; }
  int64_t tiles() const { return down() * across(); }
};

template <typename T>
struct WinogradTiles {
  WinogradImages images;
  int64_t first, end;  // tiles
  T* planes;           // row 0 is tile `first`
  int64_t plane_stride;
};

// planes = B^T x B of the 6x6 patch around each tile; what is outside the image counts as 0.
template <typename T>
struct WinogradPatchArgs {
  WinogradTiles<T> tiles;
  const T* x;
  const T* zeros;  // as many as channels
};
// y = A^T planes A, 4x4; what is outside the image is left out.
template <typename T>
struct WinogradOutputArgs {
  WinogradTiles<T> tiles;
  T* y;
};
// planes = A dy A^T of the 4x4 outputs of each tile.
template <typename T>
struct WinogradSpreadArgs {
  WinogradTiles<T> tiles;
  const T* dy;
  const T* zeros;
};
// planes = G w G^T of the filters [first, end) of [out, 3, 3, in]; turned by 180 degrees when `turned`. A row is a
// filter, its channels are `in`.
template <typename T>
struct WinogradFilterArgs {
  const T* weight;
  int64_t in, first, end;
  bool turned;
  T* planes;
  int64_t plane_stride;
};
// weight = G^T planes G.
template <typename T>
struct WinogradFilterGradientArgs {
  T* weight;
  int64_t in, first, end;
  const T* planes;
  int64_t plane_stride;
};

template <typename T>
void run_winograd_patch(const WinogradPatchArgs<T>& args);
template <typename T>
void run_winograd_output(const WinogradOutputArgs<T>& args);
template <typename T>
void run_winograd_spread(const WinogradSpreadArgs<T>& args);
template <typename T>
void run_winograd_filter(const WinogradFilterArgs<T>& args);
template <typename T>
void run_winograd_filter_gradient(const WinogradFilterGradientArgs<T>& args);

}  // namespace assay
