#include "nn/norm_act.h"

#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "nn/fused.h"
#include "nn/norm_kernels.h"

namespace assay {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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

struct Moments {
  std::vector<double> mean, variance;  // biased
};

// The pieces' own means and squared deviations, combined pairwise (Chan, Golub and LeVeque 1983): one pass over memory,
// and no cancellation however far the mean is from zero.
template <typename T>
Moments moments_of(const torch::Tensor& x) {
  const Rows rows = rows_of(x);
  const auto c = static_cast<size_t>(rows.channels);
  std::vector<T> sums(static_cast<size_t>(num_pieces(rows)) * c);
  std::vector<T> squares(sums.size());
  const T* data = x.data_ptr<T>();
  each_piece(rows, Order::Forwards, [&](int64_t piece, int64_t first, int64_t count) {
    moments_kernel<T>()({data + first * rows.channels, count, rows.channels}, &sums[piece * c], &squares[piece * c]);
  });
  Moments total{std::vector<double>(c, 0), std::vector<double>(c, 0)};
  double done = 0;
  const int64_t size = piece_rows(rows.count, rows.channels);
  for (int64_t piece = 0; piece < num_pieces(rows); ++piece) {
    const auto count = static_cast<double>(std::min(size, rows.count - piece * size));
    for (size_t k = 0; k < c; ++k) {
      const double mean = sums[piece * c + k] / count;
      const double difference = mean - total.mean[k];
      total.mean[k] += difference * count / (done + count);
      total.variance[k] += squares[piece * c + k] + difference * difference * done * count / (done + count);
    }
    done += count;
  }
  for (double& value : total.variance) value /= done;
  return total;
}

template <typename T>
std::vector<T> narrow(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

template <typename T>
torch::Tensor forward_of(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                         const NormActOptions& options, const Moments& moments, const std::vector<double>& inverse) {
  const Rows rows = rows_of(x);
  std::vector<double> scale(inverse.size());
  std::vector<double> shift(inverse.size());
  for (size_t k = 0; k < inverse.size(); ++k) {
    scale[k] = inverse[k] * weight.data_ptr<T>()[k];
    shift[k] = bias.data_ptr<T>()[k] - moments.mean[k] * scale[k];
  }
  const std::vector<T> a = widen(narrow<T>(scale));
  const std::vector<T> b = widen(narrow<T>(shift));
  torch::Tensor y = torch::empty_like(x);
  const T* added = options.residual.defined() ? options.residual.data_ptr<T>() : nullptr;
  each_piece(rows, Order::Backwards, [&](int64_t, int64_t first, int64_t count) {
    const int64_t at = first * rows.channels;
    apply_kernel<T>()({x.data_ptr<T>() + at, added ? added + at : nullptr, y.data_ptr<T>() + at, a.data(), b.data(),
                       count, rows.channels, options.relu});
  });
  return y;
}

struct Gradients {
  torch::Tensor x, weight, bias, residual;
};

template <typename T>
Gradients backward_of(const torch::Tensor& dy, const torch::Tensor& y, const torch::Tensor& x,
                      const torch::Tensor& weight, const torch::Tensor& mean, const torch::Tensor& inverse, bool relu,
                      bool has_residual) {
  const Rows rows = rows_of(x);
  const auto c = static_cast<size_t>(rows.channels);
  const double* mu = mean.data_ptr<double>();
  const double* inv = inverse.data_ptr<double>();
  const std::vector<T> center = widen(std::vector<T>(mu, mu + c));
  std::vector<T> sums(static_cast<size_t>(num_pieces(rows)) * c);
  std::vector<T> products(sums.size());
  const T* mask = relu ? y.data_ptr<T>() : nullptr;
  each_piece(rows, Order::Forwards, [&](int64_t piece, int64_t first, int64_t count) {
    const int64_t at = first * rows.channels;
    reduce_kernel<T>()(
        {dy.data_ptr<T>() + at, mask ? mask + at : nullptr, x.data_ptr<T>() + at, center.data(), count, rows.channels},
        &sums[piece * c], &products[piece * c]);
  });

  Gradients out;
  out.weight = torch::empty_like(weight);
  out.bias = torch::empty_like(weight);
  std::vector<double> a(c), b(c), d(c);
  for (size_t k = 0; k < c; ++k) {
    double sum = 0;
    double product = 0;  // of the gradient with x - mean
    for (int64_t piece = 0; piece < num_pieces(rows); ++piece) {
      sum += sums[piece * c + k];
      product += products[piece * c + k];
    }
    out.weight.data_ptr<T>()[k] = static_cast<T>(product * inv[k]);
    out.bias.data_ptr<T>()[k] = static_cast<T>(sum);
    const auto n = static_cast<double>(rows.count);
    a[k] = weight.data_ptr<T>()[k] * inv[k];
    b[k] = -a[k] * inv[k] * inv[k] * product / n;
    d[k] = -a[k] * sum / n - b[k] * mu[k];
  }
  const std::vector<T> wide_a = widen(narrow<T>(a)), wide_b = widen(narrow<T>(b)), wide_d = widen(narrow<T>(d));
  out.x = torch::empty_like(x);
  if (has_residual) out.residual = relu ? torch::empty_like(x) : dy;
  T* residual = has_residual && relu ? out.residual.data_ptr<T>() : nullptr;
  each_piece(rows, Order::Backwards, [&](int64_t, int64_t first, int64_t count) {
    const int64_t at = first * rows.channels;
    spread_kernel<T>()({dy.data_ptr<T>() + at, mask ? mask + at : nullptr, x.data_ptr<T>() + at,
                        out.x.data_ptr<T>() + at, residual ? residual + at : nullptr, wide_a.data(), wide_b.data(),
                        wide_d.data(), count, rows.channels});
  });
  return out;
}

class NormAct : public torch::autograd::Function<NormAct> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight,
                               const torch::Tensor& bias, const c10::optional<torch::Tensor>& residual,
                               torch::Tensor running_mean, torch::Tensor running_variance, double momentum,
                               double epsilon, bool relu) {
    const bool is_float = x.scalar_type() == torch::kFloat;
    const Moments moments = is_float ? moments_of<float>(x) : moments_of<double>(x);
    const auto n = static_cast<double>(rows_of(x).count);
    std::vector<double> inverse(moments.variance.size());
    std::vector<double> unbiased(moments.variance.size());
    for (size_t k = 0; k < inverse.size(); ++k) {
      inverse[k] = 1 / std::sqrt(moments.variance[k] + epsilon);
      unbiased[k] = moments.variance[k] * n / std::max(n - 1, 1.0);
    }
    const auto tensor = [](const std::vector<double>& values) { return torch::tensor(values, torch::kDouble); };
    running_mean.mul_(1 - momentum).add_(tensor(moments.mean).to(running_mean.scalar_type()), momentum);
    running_variance.mul_(1 - momentum).add_(tensor(unbiased).to(running_variance.scalar_type()), momentum);

    const NormActOptions options{.residual = residual.value_or(torch::Tensor()), .relu = relu};
    const torch::Tensor y = is_float ? forward_of<float>(x, weight, bias, options, moments, inverse)
                                     : forward_of<double>(x, weight, bias, options, moments, inverse);
    context->save_for_backward({x, weight, y, tensor(moments.mean), tensor(inverse)});
    context->saved_data["relu"] = relu;
    context->saved_data["residual"] = residual.has_value();
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor& x = saved[0];
    const torch::Tensor dy = gradients[0].contiguous(torch::MemoryFormat::ChannelsLast);
    const bool relu = context->saved_data["relu"].toBool();
    const bool residual = context->saved_data["residual"].toBool();
    const Gradients g = x.scalar_type() == torch::kFloat
                            ? backward_of<float>(dy, saved[2], x, saved[1], saved[3], saved[4], relu, residual)
                            : backward_of<double>(dy, saved[2], x, saved[1], saved[3], saved[4], relu, residual);
    const torch::Tensor none;
    return {g.x, g.weight, g.bias, g.residual, none, none, none, none, none};
  }
};

bool can_fuse(const torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& x, const torch::Tensor& residual) {
  const auto fits = [&](const torch::Tensor& t) {
    return t.dim() == 4 && t.device().is_cpu() && is_channels_last(t) && t.scalar_type() == norm.weight.scalar_type();
  };
  const bool known_type = x.scalar_type() == torch::kFloat || x.scalar_type() == torch::kDouble;
  const bool plain_options = norm.options.affine() && norm.options.track_running_stats() && norm.options.momentum();
  return norm.is_training() && known_type && plain_options && fits(x) &&
         (!residual.defined() || (fits(residual) && residual.sizes() == x.sizes())) && rows_of(x).count > 1 &&
         x.size(1) <= kMaxNormChannels;
}

}  // namespace

torch::Tensor norm_act(torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& x, const NormActOptions& options) {
  if (!can_fuse(norm, x, options.residual)) {
    torch::Tensor y = norm.forward(x);
    if (options.residual.defined()) y = y + options.residual;
    return options.relu ? y.relu() : y;
  }
  norm.num_batches_tracked.add_(1);
  // An undefined tensor is not an input that autograd accepts, an absent one is.
  c10::optional<torch::Tensor> residual;
  if (options.residual.defined()) residual = options.residual;
  return NormAct::apply(x, norm.weight, norm.bias, residual, norm.running_mean, norm.running_var,
                        *norm.options.momentum(), norm.options.eps(), options.relu);
}

}  // namespace assay
