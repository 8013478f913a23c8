// What the fused operators of this folder share.
#pragma once

#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "kernels/philox.h"

namespace assay {

// True when a fused operator may take these: on the CPU, all float or all double, no export tracing and no autocast,
// which have to see libtorch's operators. Undefined tensors are passed over.
bool can_fuse(std::initializer_list<torch::Tensor> tensors);

inline bool is_float(const torch::Tensor& x) { return x.scalar_type() == torch::kFloat; }
inline bool is_channels_last(const torch::Tensor& x) { return x.is_contiguous(torch::MemoryFormat::ChannelsLast); }

// A dropout mask of its own: the seed is drawn from libtorch's CPU generator, so that the generator's state decides it.
// Nothing is drawn when `probability` is 0.
// Processes that draw the same seed get other masks by another stream.
DropoutKey draw_dropout(double probability, uint64_t stream = 0);

inline constexpr int64_t kRowPiece = 32;  // rows of a piece

// Runs work(piece, first row, end row) over fixed pieces of rows, on all threads.
template <typename Work>
void each_row_piece(int64_t num_rows, Work&& work) {
  const int64_t count = (num_rows + kRowPiece - 1) / kRowPiece;
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) work(i, i * kRowPiece, std::min(num_rows, (i + 1) * kRowPiece));
  });
}

// Sums over rows, taken a piece at a time and added in order: the number of threads does not change them.
template <typename T>
class PieceSums {
 public:
  PieceSums(int64_t num_rows, int64_t width)
      : width_(width), sums_(static_cast<size_t>((num_rows + kRowPiece - 1) / kRowPiece * width), T(0)) {}
  T* of(int64_t piece) { return sums_.data() + piece * width_; }
  torch::Tensor total() const {
    torch::Tensor result = torch::zeros({width_}, c10::CppTypeToScalarType<T>::value);
    T* __restrict to = result.data_ptr<T>();
    for (size_t i = 0; i < sums_.size(); i += width_) {
      for (int64_t c = 0; c < width_; ++c) to[c] += sums_[i + c];
    }
    return result;
  }

 private:
  int64_t width_;
  std::vector<T> sums_;
};

}  // namespace assay
