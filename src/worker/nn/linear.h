// Matrix products of the transformer layers, in float32 through oneDNN, whose products are a tenth to a third faster
// here than those of the BLAS that libtorch uses (docs/reference/performance.md).
#pragma once

#include <torch/types.h>

namespace assay {

enum class WeightLayout {
  OutIn,  // [out, in], as torch.nn.Linear keeps it
  InOut,  // [in, out], as the published GPT-2 keeps it
};

// x [..., in] times the weight: [..., out]. Biases are added by the operator that reads the result.
torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, WeightLayout layout);

// x [..., in] times a weight [out, in], plus a bias [out]: what torch.nn.Linear computes. Outside of training
// it is libtorch's operator, so that an evaluation gives what the export does.
torch::Tensor affine(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias);

// The results of three weights [out, in] side by side, [..., 3 out]: query, key and value of one attention.
torch::Tensor linear3(const torch::Tensor& x, const torch::Tensor& first, const torch::Tensor& second,
                      const torch::Tensor& third);

// The gradient of the weight from that of the result dy [..., out] and x [..., in]; both contiguous, float or double.
torch::Tensor weight_gradient(const torch::Tensor& dy, const torch::Tensor& x, WeightLayout layout);

// A matrix in memory, rows `stride` elements apart, taken as its transpose when `transposed`.
template <typename T>
struct MatrixView {
  T* data;
  int64_t stride;
  bool transposed = false;
};
struct ProductSize {
  int64_t rows, columns, depth;
};
// c = a b, or c += a b; c is not transposed.
template <typename T>
void multiply_into(MatrixView<T> c, MatrixView<const T> a, MatrixView<const T> b, const ProductSize& size, bool add);

}  // namespace assay
