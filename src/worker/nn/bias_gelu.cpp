#include "nn/bias_gelu.h"

#include <ATen/record_function.h>
#include <torch/autograd.h>
#include <torch/nn/functional/activation.h>

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "kernels/simd.h"
#include "nn/fused.h"

namespace assay {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <typename T>
struct GeluArgs {
  int64_t begin, end, width;  // rows
  const T* x;
  const T* bias;
  const T* dy;  // null: forward, y is written; else backward, dx is written and its column sums added to dbias
  T* to;
  T* dbias;
  Gelu kind;
};

template <typename V>
struct ValueAndSlope {
  V value, slope;
};

// x sigmoid(2 u) is 0.5 x (1 + tanh(u)) without its cancellation for negative x.
template <typename T, int Bytes>
ASSAY_INLINE ValueAndSlope<simd::Vec<T, Bytes>> gelu_tanh(simd::Vec<T, Bytes> x) {
  using V = simd::Vec<T, Bytes>;
  constexpr T kA = 0.044715;
  const T scale = static_cast<T>(2 * std::sqrt(2 / std::numbers::pi));
  const V square = x * x;
  const V sigmoid = T(1) / (T(1) + simd::exp_of<T, Bytes>(-scale * x * (T(1) + kA * square)));
  const V slope = sigmoid + x * sigmoid * (T(1) - sigmoid) * scale * (T(1) + 3 * kA * square);
  return {x * sigmoid, slope};
}

// The normal distribution's tail by Abramowitz and Stegun 7.1.26 in float (error 1.5e-7 of 1), the library's in double.
template <typename T, int Bytes>
ASSAY_INLINE ValueAndSlope<simd::Vec<T, Bytes>> gelu_erf(simd::Vec<T, Bytes> x) {
  using V = simd::Vec<T, Bytes>;
  const V bell = simd::exp_of<T, Bytes>(x * x * T(-0.5));
  V below;  // Phi(x)
  if constexpr (sizeof(T) == 4) {
    const V z = (x < V{} ? -x : x) * static_cast<T>(1 / std::numbers::sqrt2);
    const V t = 1.0F / (1.0F + 0.3275911F * z);
    V p = simd::all<V>(1.061405429F);
    p = p * t - 1.453152027F;
    p = p * t + 1.421413741F;
    p = p * t - 0.284496736F;
    p = p * t + 0.254829592F;
    const V tail = 0.5F * p * t * bell;
    below = x < V{} ? tail : 1.0F - tail;
  } else {
    for (int64_t i = 0; i < simd::kLanes<T, Bytes>; ++i) below[i] = 0.5 * std::erfc(-x[i] / std::numbers::sqrt2);
  }
  return {x * below, below + x * bell * static_cast<T>(std::numbers::inv_sqrtpi / std::numbers::sqrt2)};
}

template <typename T, int Bytes>
ASSAY_INLINE void gelu_rows(const GeluArgs<T>& p) {
  using V = simd::Vec<T, Bytes>;
  const auto work = [&](auto f) __attribute__((always_inline)) {
    for (int64_t row = p.begin; row < p.end; ++row) {
      const int64_t at = row * p.width;
      simd::each_vector<T, Bytes>(
          p.width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
            const auto made = f(simd::load_up_to<V>(p.x + at + i, n) + simd::load_up_to<V>(p.bias + i, n));
            if (p.dy) {
              const V dx = simd::load_up_to<V>(p.dy + at + i, n) * made.slope;
              simd::store_up_to(p.to + at + i, dx, n);
              simd::store_up_to(p.dbias + i, simd::load_up_to<V>(p.dbias + i, n) + dx, n);
            } else {
              simd::store_up_to(p.to + at + i, made.value, n);
            }
          });
    }
  };
  if (p.kind == Gelu::Tanh) {
    work([](V x) __attribute__((always_inline)) { return gelu_tanh<T, Bytes>(x); });
  } else {
    work([](V x) __attribute__((always_inline)) { return gelu_erf<T, Bytes>(x); });
  }
}

ASSAY_SIMD_KERNEL(gelu_rows, GeluArgs)

template <typename T>
torch::Tensor forward_gelu(const torch::Tensor& x, const torch::Tensor& bias, Gelu kind) {
  torch::Tensor y = torch::empty_like(x);
  each_row_piece(x.numel() / x.size(-1), [&](int64_t, int64_t begin, int64_t end) {
    run_gelu_rows<T>(
        {begin, end, x.size(-1), x.data_ptr<T>(), bias.data_ptr<T>(), nullptr, y.data_ptr<T>(), nullptr, kind});
  });
  return y;
}

struct GeluGradients {
  torch::Tensor x, bias;
};

// Writes the gradient of x to `to`, which may be dy.
template <typename T>
GeluGradients backward_gelu(const torch::Tensor& dy, const torch::Tensor& x, const torch::Tensor& bias, Gelu kind,
                            const torch::Tensor& to) {
  const int64_t width = x.size(-1), rows = x.numel() / width;
  PieceSums<T> sums(rows, width);
  each_row_piece(rows, [&](int64_t piece, int64_t begin, int64_t end) {
    run_gelu_rows<T>({begin, end, width, x.data_ptr<T>(), bias.data_ptr<T>(), dy.data_ptr<T>(), to.data_ptr<T>(),
                      sums.of(piece), kind});
  });
  return {to, sums.total()};
}

torch::Tensor forward_any_gelu(const torch::Tensor& x, const torch::Tensor& bias, Gelu kind) {
  return x.scalar_type() == torch::kFloat ? forward_gelu<float>(x, bias, kind) : forward_gelu<double>(x, bias, kind);
}

GeluGradients backward_any_gelu(const torch::Tensor& dy, const torch::Tensor& x, const torch::Tensor& bias, Gelu kind,
                                const torch::Tensor& to) {
  return x.scalar_type() == torch::kFloat ? backward_gelu<float>(dy, x, bias, kind, to)
                                          : backward_gelu<double>(dy, x, bias, kind, to);
}

class BiasGelu : public torch::autograd::Function<BiasGelu> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& bias,
                               int64_t kind) {
    context->save_for_backward({x, bias});
    context->saved_data["kind"] = kind;
    return forward_any_gelu(x, bias, static_cast<Gelu>(kind));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto kind = static_cast<Gelu>(context->saved_data["kind"].toInt());
    const GeluGradients g =
        backward_any_gelu(gradients[0].contiguous(), saved[0], saved[1], kind, torch::empty_like(saved[0]));
    return {g.x, g.bias, {}};
  }
};

class GeluLinear : public torch::autograd::Function<GeluLinear> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& bias,
                               const torch::Tensor& weight, int64_t kind, int64_t layout) {
    context->save_for_backward({x, bias, weight});
    context->saved_data["kind"] = kind;
    context->saved_data["layout"] = layout;
    return linear(forward_any_gelu(x, bias, static_cast<Gelu>(kind)), weight, static_cast<WeightLayout>(layout));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto kind = static_cast<Gelu>(context->saved_data["kind"].toInt());
    const auto layout = static_cast<WeightLayout>(context->saved_data["layout"].toInt());
    const auto transposed = layout == WeightLayout::InOut ? WeightLayout::OutIn : WeightLayout::InOut;
    const torch::Tensor dy = gradients[0].contiguous();
    torch::Tensor dweight;
    if (context->needs_input_grad(2)) {
      dweight = weight_gradient(dy, forward_any_gelu(saved[0], saved[1], kind), layout);
    }
    const torch::Tensor made = linear(dy, saved[2], transposed);  // the gradient of what GELU made
    const GeluGradients g = backward_any_gelu(made, saved[0], saved[1], kind, made);
    return {g.x, g.bias, dweight, {}, {}};
  }
};

}  // namespace

torch::Tensor bias_gelu(const torch::Tensor& x, const torch::Tensor& bias, Gelu kind) {
  if (!can_fuse({x, bias})) return torch::gelu(x + bias, kind == Gelu::Tanh ? "tanh" : "none");
  ASSAY_CHECK(x.size(-1) == bias.numel(), "x and the bias do not fit");
  RECORD_FUNCTION("assay::bias_gelu", std::vector<c10::IValue>());
  return BiasGelu::apply(x.contiguous(), bias.contiguous(), static_cast<int64_t>(kind));
}

torch::Tensor gelu_linear(const torch::Tensor& x, const torch::Tensor& bias, Gelu kind, const torch::Tensor& weight,
                          WeightLayout layout) {
  if (!can_fuse({x, bias, weight}) || !weight.is_contiguous()) return linear(bias_gelu(x, bias, kind), weight, layout);
  ASSAY_CHECK(x.size(-1) == bias.numel(), "x and the bias do not fit");
  RECORD_FUNCTION("assay::gelu_linear", std::vector<c10::IValue>());
  return GeluLinear::apply(x.contiguous(), bias.contiguous(), weight, static_cast<int64_t>(kind),
                           static_cast<int64_t>(layout));
}

}  // namespace assay
