#include "nn/norm_core.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/norm_kernels.h"
#include "nn/batch_statistics.h"
#include "nn/fused.h"
#include "nn/recompute.h"

namespace assay {

namespace {

// x as a matrix of rows [C], which is what channels last is in memory.
struct Rows {
  int64_t count;
  int64_t channels;
};
Rows rows_of(const torch::Tensor& x) { return {x.size(0) * x.size(2) * x.size(3), x.size(1)}; }

int64_t num_pieces(const Rows& rows) {
  const int64_t size = piece_rows(rows.count, rows.channels);
  return (rows.count + size - 1) / size;
}

// The second pass over the same tensors goes backwards: what the first one read last is still in the cache.
enum class Order { Forwards, Backwards };

// Runs work(piece, first row, number of rows) over fixed pieces, on all threads.
template <typename Work>
void each_piece(const Rows& rows, Order order, Work&& work) {
  const int64_t size = piece_rows(rows.count, rows.channels);
  at::parallel_for(0, num_pieces(rows), 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = 0; k < end - begin; ++k) {
      const int64_t i = order == Order::Forwards ? begin + k : end - 1 - k;
      work(i, i * size, std::min(size, rows.count - i * size));
    }
  });
}

// Results larger than this are written past the caches: who reads them next finds them in memory anyway.
constexpr int64_t kStreamedBytes = 4 << 20;

template <typename T>
bool streams(const torch::Tensor& result) {
  constexpr int64_t kVector = 64;  // bytes of the widest
  return result.numel() * static_cast<int64_t>(sizeof(T)) >= kStreamedBytes &&
         result.size(1) * static_cast<int64_t>(sizeof(T)) % kVector == 0 &&
         reinterpret_cast<uintptr_t>(result.data_ptr<T>()) % kVector == 0;
}

template <typename T>
BatchMoments moments_of(const torch::Tensor& x) {
  const Rows rows = rows_of(x);
  const auto c = static_cast<size_t>(rows.channels);
  std::vector<T> sums(static_cast<size_t>(num_pieces(rows)) * c);
  std::vector<T> squares(sums.size());
  const T* data = x.data_ptr<T>();
  each_piece(rows, Order::Forwards, [&](int64_t piece, int64_t first, int64_t count) {
    run_norm_moments<T>({data + first * rows.channels, count, rows.channels, &sums[piece * c], &squares[piece * c]});
  });
  BatchMoments total{static_cast<double>(rows.count), std::vector<double>(c), std::vector<double>(c)};
  run_norm_combine<T>({sums.data(), squares.data(), rows.count, piece_rows(rows.count, rows.channels), rows.channels,
                       total.mean.data(), total.variance.data()});
  return shared_moments(std::move(total));
}

// What a channel is multiplied with and what is added to it, widened for the kernels.
template <typename T>
struct Line {
  std::vector<T> scale, shift;
};

template <typename T>
Line<T> line_of(const torch::Tensor& weight, const torch::Tensor& bias, const double* mean, const double* inverse) {
  const auto c = static_cast<size_t>(weight.numel());
  Line<T> line{std::vector<T>(c), std::vector<T>(c)};
  for (size_t k = 0; k < c; ++k) {
    const double scale = inverse[k] * weight.data_ptr<T>()[k];
    line.scale[k] = static_cast<T>(scale);
    line.shift[k] = static_cast<T>(bias.data_ptr<T>()[k] - mean[k] * scale);
  }
  return {widen(line.scale), widen(line.shift)};
}

template <typename T>
torch::Tensor output_of(const NormKept& kept, const torch::Tensor& residual) {
  const torch::Tensor& x = kept.x;
  const Rows rows = rows_of(x);
  const Line<T> line =
      line_of<T>(kept.weight, kept.bias, kept.mean.data_ptr<double>(), kept.inverse.data_ptr<double>());
  torch::Tensor y = torch::empty_like(x);
  const T* added = residual.defined() ? residual.data_ptr<T>() : nullptr;
  const bool past_caches = streams<T>(y);
  each_piece(rows, Order::Backwards, [&](int64_t, int64_t first, int64_t count) {
    const int64_t at = first * rows.channels;
    run_norm_apply<T>({x.data_ptr<T>() + at, added ? added + at : nullptr, y.data_ptr<T>() + at, line.scale.data(),
                       line.shift.data(), count, rows.channels, kept.relu, past_caches});
  });
  return y;
}

template <typename T>
NormGradients gradients_of(const torch::Tensor& dy, const NormKept& kept) {
  const torch::Tensor &x = kept.x, &weight = kept.weight;
  const Rows rows = rows_of(x);
  const auto c = static_cast<size_t>(rows.channels);
  const double* mu = kept.mean.data_ptr<double>();
  const double* inv = kept.inverse.data_ptr<double>();
  const std::vector<T> center = widen(std::vector<T>(mu, mu + c));
  const Line<T> line = line_of<T>(weight, kept.bias, mu, inv);
  const auto mask_at = [&](int64_t at) -> ReluMask<T> {
    if (!kept.relu) return {nullptr, nullptr, nullptr};
    if (kept.y.defined()) return {kept.y.data_ptr<T>() + at, nullptr, nullptr};
    return {nullptr, line.scale.data(), line.shift.data()};
  };
  std::vector<T> sums(static_cast<size_t>(num_pieces(rows)) * c);
  std::vector<T> products(sums.size());
  each_piece(rows, Order::Forwards, [&](int64_t piece, int64_t first, int64_t count) {
    const int64_t at = first * rows.channels;
    run_norm_reduce<T>({dy.data_ptr<T>() + at, x.data_ptr<T>() + at, mask_at(at), center.data(), count, rows.channels,
                        &sums[piece * c], &products[piece * c]});
  });
  std::vector<double> sum(c), product(c);  // of the gradient, and of the gradient with x - mean
  run_norm_total<T>({sums.data(), num_pieces(rows), rows.channels, sum.data()});
  run_norm_total<T>({products.data(), num_pieces(rows), rows.channels, product.data()});

  NormGradients out;
  out.weight = torch::empty_like(weight);
  out.bias = torch::empty_like(weight);
  std::vector<T> a(c), b(c), d(c);
  for (size_t k = 0; k < c; ++k) {
    out.weight.data_ptr<T>()[k] = static_cast<T>(product[k] * inv[k]);
    out.bias.data_ptr<T>()[k] = static_cast<T>(sum[k]);
  }
  std::vector<double> shared = {static_cast<double>(rows.count)};
  shared.insert(shared.end(), sum.begin(), sum.end());
  shared.insert(shared.end(), product.begin(), product.end());
  share_sums(shared);
  const double n = shared[0];
  for (size_t k = 0; k < c; ++k) {
    sum[k] = shared[1 + k];
    product[k] = shared[1 + c + k];
    const double scale = weight.data_ptr<T>()[k] * inv[k];
    const double slope = -scale * inv[k] * inv[k] * product[k] / n;
    a[k] = static_cast<T>(scale);
    b[k] = static_cast<T>(slope);
    d[k] = static_cast<T>(-scale * sum[k] / n - slope * mu[k]);
  }
  const std::vector<T> wide_a = widen(a), wide_b = widen(b), wide_d = widen(d);
  out.x = torch::empty_like(x);
  // Without ReLU the residual's gradient is dy itself.
  T* residual = nullptr;
  if (kept.y.defined() && kept.relu) {
    out.residual = torch::empty_like(x);
    residual = out.residual.data_ptr<T>();
  }
  const bool past_caches = streams<T>(out.x) && (!residual || streams<T>(out.residual));
  each_piece(rows, Order::Backwards, [&](int64_t, int64_t first, int64_t count) {
    const int64_t at = first * rows.channels;
    run_norm_spread<T>({dy.data_ptr<T>() + at, x.data_ptr<T>() + at, mask_at(at), out.x.data_ptr<T>() + at,
                        residual ? residual + at : nullptr, wide_a.data(), wide_b.data(), wide_d.data(), count,
                        rows.channels, past_caches});
  });
  return out;
}

torch::Tensor as_tensor(const std::vector<double>& values) { return torch::tensor(values, torch::kDouble); }

}  // namespace

bool can_fuse_norm(const torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& x, const torch::Tensor& residual) {
  const auto fits = [&](const torch::Tensor& t) {
    return t.dim() == 4 && t.device().is_cpu() && is_channels_last(t) && t.scalar_type() == norm.weight.scalar_type();
  };
  const bool known_type = is_float(x) || x.scalar_type() == torch::kDouble;
  const bool plain_options = norm.options.affine() && norm.options.track_running_stats() && norm.options.momentum();
  return norm.is_training() && known_type && plain_options && fits(x) &&
         (!residual.defined() || (fits(residual) && residual.sizes() == x.sizes())) && rows_of(x).count > 1 &&
         x.size(1) <= kMaxNormChannels;
}

NormKept normalise(torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& x, bool relu) {
  const BatchMoments moments = is_float(x) ? moments_of<float>(x) : moments_of<double>(x);
  const double n = moments.count;
  const double momentum = *norm.options.momentum();
  std::vector<double> inverse(moments.variance.size());
  std::vector<double> unbiased(moments.variance.size());
  for (size_t k = 0; k < inverse.size(); ++k) {
    inverse[k] = 1 / std::sqrt(moments.variance[k] + norm.options.eps());
    unbiased[k] = moments.variance[k] * n / std::max(n - 1, 1.0);
  }
  const auto update = [&](torch::Tensor& running, const std::vector<double>& values) {
    running.mul_(1 - momentum).add_(as_tensor(values).to(running.scalar_type()), momentum);
  };
  if (!is_recomputing()) {
    const torch::NoGradGuard no_grad;
    norm.num_batches_tracked.add_(1);
    update(norm.running_mean, moments.mean);
    update(norm.running_var, unbiased);
  }
  return {.x = x,
          .weight = norm.weight,
          .bias = norm.bias,
          .mean = as_tensor(moments.mean),
          .inverse = as_tensor(inverse),
          .y = {},
          .relu = relu};
}

torch::Tensor norm_output(const NormKept& kept, const torch::Tensor& residual) {
  return is_float(kept.x) ? output_of<float>(kept, residual) : output_of<double>(kept, residual);
}

NormGradients norm_gradients(const torch::Tensor& dy, const NormKept& kept) {
  return is_float(dy) ? gradients_of<float>(dy, kept) : gradients_of<double>(dy, kept);
}

}  // namespace assay
