#include "nn/dropout.h"

#include <algorithm>

#include "nn/fused.h"

namespace assay {

namespace {

template <typename T>
torch::Tensor factors_like(const torch::Tensor& x, const DropoutKey& key) {
  const torch::Tensor factors = torch::empty(x.sizes(), c10::CppTypeToScalarType<T>::value);
  const int64_t width = x.size(-1);
  T* out = factors.data_ptr<T>();
  each_row_piece(x.numel() / width, [&](int64_t, int64_t begin, int64_t end) {
    T batch[kPhiloxBatch];
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t column = 0; column < width; column += kPhiloxBatch) {
        dropout_factors(key, static_cast<uint64_t>(row), column, batch);
        std::copy_n(batch, std::min(kPhiloxBatch, width - column), out + row * width + column);
      }
    }
  });
  return factors;
}

}  // namespace

torch::Tensor apply_dropout(const torch::Tensor& x, double probability, uint64_t stream) {
  // Other devices draw with generators of their own.
  if (!x.device().is_cpu()) return torch::dropout(x, probability, /*train=*/probability > 0);
  const DropoutKey key = draw_dropout(probability, stream);
  if (!key.on() || x.numel() == 0) return x;
  const torch::Tensor factors =
      x.scalar_type() == torch::kDouble ? factors_like<double>(x, key) : factors_like<float>(x, key);
  return x * factors.to(x.scalar_type());
}

}  // namespace assay
