#include "nn/linear.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <oneapi/dnnl/dnnl.h>
#include <torch/autograd.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/simd.h"
#include "nn/fused.h"

namespace assay {

namespace {

constexpr int64_t kVector = 16;  // floats of the widest: parts of a product are whole numbers of them

template <typename T>
torch::Tensor as_tensor(const MatrixView<const T>& m, int64_t rows, int64_t columns) {
  auto* data = const_cast<T*>(m.data);  // from_blob takes no other; nothing is written through it
  const auto type = c10::CppTypeToScalarType<T>::value;
  return m.transposed ? torch::from_blob(data, {rows, columns}, {1, m.stride}, type)
                      : torch::from_blob(data, {rows, columns}, {m.stride, 1}, type);
}

// By the BLAS that libtorch uses.
template <typename T>
void multiply_by_blas(MatrixView<T> c, MatrixView<const T> a, MatrixView<const T> b, const ProductSize& size,
                      bool add) {
  torch::Tensor out = as_tensor<T>({c.data, c.stride}, size.rows, size.columns);
  const torch::Tensor x = as_tensor<T>(a, size.rows, size.depth), y = as_tensor<T>(b, size.depth, size.columns);
  add ? out.addmm_(x, y) : at::mm_out(out, x, y);
}

// With AVX2 oneDNN reads the left factor of such a product in place. When rows are a power of two apart, all that it
// reads together falls on a few lines of the cache, and the product takes up to twice the time.
bool collides_in_cache(MatrixView<const float> a, MatrixView<const float> b, const ProductSize& size) {
  constexpr int64_t kApart = 512, kDeep = 1024, kSmall = 1 << 19;
  return simd_width() == SimdWidth::Avx2 && a.transposed && (a.stride % kApart == 0 || b.stride % kApart == 0) &&
         size.depth >= kDeep && size.rows * size.columns <= kSmall;
}

}  // namespace

template <>
void multiply_into(MatrixView<float> c, MatrixView<const float> a, MatrixView<const float> b, const ProductSize& size,
                   bool add) {
  if (collides_in_cache(a, b, size)) return multiply_by_blas(c, a, b, size, add);
  // Rows or columns are shared out here, each thread's part a product of its own: faster than oneDNN's way with threads
  // when the product is small.
  const bool by_rows = size.rows > size.columns;
  const int64_t extent = by_rows ? size.rows : size.columns;
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  const int64_t part = (extent + threads * kVector - 1) / (threads * kVector) * kVector;
  at::parallel_for(0, (extent + part - 1) / part, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * part, count = std::min(extent, end * part) - first;
    const float* left = by_rows ? a.data + first * (a.transposed ? 1 : a.stride) : a.data;
    const float* right = by_rows ? b.data : b.data + first * (b.transposed ? b.stride : 1);
    float* to = c.data + first * (by_rows ? c.stride : 1);
    const dnnl_status_t status = dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N',
                                            by_rows ? count : size.rows, by_rows ? size.columns : count, size.depth,
                                            1.0F, left, a.stride, right, b.stride, add ? 1.0F : 0.0F, to, c.stride);
    ASSAY_CHECK(status == dnnl_success, "oneDNN refused a matrix product");
  });
}

template <>
void multiply_into(MatrixView<double> c, MatrixView<const double> a, MatrixView<const double> b,
                   const ProductSize& size, bool add) {
  multiply_by_blas(c, a, b, size, add);
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The weights as the columns of one matrix: in, and out of each.
struct LinearSizes {
  int64_t rows, in, out;
};

LinearSizes sizes_of(const torch::Tensor& x, const torch::Tensor& weight, WeightLayout layout) {
  const int64_t in = x.size(-1);
  return {x.numel() / in, in, weight.size(layout == WeightLayout::OutIn ? 0 : 1)};
}

template <typename T>
torch::Tensor forward_linear(const torch::Tensor& x, const variable_list& weights, WeightLayout layout) {
  const LinearSizes s = sizes_of(x, weights[0], layout);
  const auto count = static_cast<int64_t>(weights.size());
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = count * s.out;
  torch::Tensor y = torch::empty(shape, x.options());
  for (int64_t i = 0; i < count; ++i) {
    multiply_into<T>({y.data_ptr<T>() + i * s.out, count * s.out}, {x.data_ptr<T>(), s.in},
                     {weights[i].data_ptr<T>(), weights[i].size(1), layout == WeightLayout::OutIn},
                     {s.rows, s.out, s.in}, false);
  }
  return y;
}

template <typename T>
torch::Tensor input_gradient(const torch::Tensor& dy, const torch::Tensor& x, const variable_list& weights,
                             WeightLayout layout) {
  const LinearSizes s = sizes_of(x, weights[0], layout);
  torch::Tensor dx = torch::empty_like(x);
  for (size_t i = 0; i < weights.size(); ++i) {
    multiply_into<T>({dx.data_ptr<T>(), s.in}, {dy.data_ptr<T>() + static_cast<int64_t>(i) * s.out, dy.size(-1)},
                     {weights[i].data_ptr<T>(), weights[i].size(1), layout == WeightLayout::InOut},
                     {s.rows, s.in, s.out}, i > 0);
  }
  return dx;
}

// Of the columns of dy from `first` on that belong to one weight.
struct Columns {
  int64_t first, count;
};

template <typename T>
torch::Tensor gradient_of_columns(const torch::Tensor& dy, const Columns& columns, const torch::Tensor& x,
                                  WeightLayout layout) {
  const int64_t in = x.size(-1), rows = x.numel() / in;
  MatrixView<const T> left{x.data_ptr<T>(), in}, right{dy.data_ptr<T>() + columns.first, dy.size(-1)};
  std::vector<int64_t> shape = {in, columns.count};
  if (layout == WeightLayout::OutIn) {
    std::swap(left, right);
    std::swap(shape[0], shape[1]);
  }
  left.transposed = true;
  torch::Tensor dw = torch::empty(shape, x.options());
  multiply_into<T>({dw.data_ptr<T>(), shape[1]}, left, right, {shape[0], shape[1], rows}, false);
  return dw;
}

torch::Tensor gradient_of_any_columns(const torch::Tensor& dy, const Columns& columns, const torch::Tensor& x,
                                      WeightLayout layout) {
  return x.scalar_type() == torch::kFloat ? gradient_of_columns<float>(dy, columns, x, layout)
                                          : gradient_of_columns<double>(dy, columns, x, layout);
}

variable_list linear_gradients(AutogradContext* context, const torch::Tensor& gradient, WeightLayout layout) {
  variable_list saved = context->get_saved_variables();
  const torch::Tensor x = saved.front(), dy = gradient.contiguous();
  const variable_list weights(saved.begin() + 1, saved.end());
  const bool is_float = dy.scalar_type() == torch::kFloat;
  variable_list result(1 + weights.size());
  if (context->needs_input_grad(0)) {
    result[0] =
        is_float ? input_gradient<float>(dy, x, weights, layout) : input_gradient<double>(dy, x, weights, layout);
  }
  const int64_t out = dy.size(-1) / static_cast<int64_t>(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!context->needs_input_grad(i + 1)) continue;
    result[i + 1] = gradient_of_any_columns(dy, {static_cast<int64_t>(i) * out, out}, x, layout);
  }
  return result;
}

torch::Tensor forward_any(const torch::Tensor& x, const variable_list& weights, WeightLayout layout) {
  return x.scalar_type() == torch::kFloat ? forward_linear<float>(x, weights, layout)
                                          : forward_linear<double>(x, weights, layout);
}

class Linear1 : public torch::autograd::Function<Linear1> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight,
                               int64_t layout) {
    context->save_for_backward({x, weight});
    context->saved_data["layout"] = layout;
    return forward_any(x, {weight}, static_cast<WeightLayout>(layout));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    variable_list result =
        linear_gradients(context, gradients[0], static_cast<WeightLayout>(context->saved_data["layout"].toInt()));
    result.emplace_back();
    return result;
  }
};

class BiasedLinear : public torch::autograd::Function<BiasedLinear> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight,
                               const torch::Tensor& bias) {
    context->save_for_backward({x, weight});
    std::vector<int64_t> shape = x.sizes().vec();
    shape.back() = bias.size(0);
    torch::Tensor y = bias.expand(shape).contiguous();
    const LinearSizes s = sizes_of(x, weight, WeightLayout::OutIn);
    if (x.scalar_type() == torch::kFloat) {
      add_product<float>(y, x, weight, s);
    } else {
      add_product<double>(y, x, weight, s);
    }
    return y;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    variable_list result = linear_gradients(context, gradients[0], WeightLayout::OutIn);
    result.push_back(context->needs_input_grad(2) ? gradients[0].flatten(0, -2).sum(0) : torch::Tensor());
    return result;
  }

 private:
  template <typename T>
  static void add_product(const torch::Tensor& y, const torch::Tensor& x, const torch::Tensor& weight,
                          const LinearSizes& s) {
    multiply_into<T>({y.data_ptr<T>(), s.out}, {x.data_ptr<T>(), s.in}, {weight.data_ptr<T>(), s.in, true},
                     {s.rows, s.out, s.in}, true);
  }
};

class Linear3 : public torch::autograd::Function<Linear3> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& first,
                               const torch::Tensor& second, const torch::Tensor& third) {
    context->save_for_backward({x, first, second, third});
    return forward_any(x, {first, second, third}, WeightLayout::OutIn);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return linear_gradients(context, gradients[0], WeightLayout::OutIn);
  }
};

}  // namespace

torch::Tensor weight_gradient(const torch::Tensor& dy, const torch::Tensor& x, WeightLayout layout) {
  return gradient_of_any_columns(dy, {0, dy.size(-1)}, x, layout);
}

torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, WeightLayout layout) {
  if (!can_fuse({x, weight}) || !weight.is_contiguous()) {
    // By the name that lists of operators have for it (Engine.mix_precision.custom_black_list).
    return torch::linear(x, layout == WeightLayout::OutIn ? weight : weight.t());
  }
  ASSAY_CHECK(x.size(-1) == weight.size(layout == WeightLayout::OutIn ? 1 : 0), "x and the weight do not fit");
  RECORD_FUNCTION("assay::linear", std::vector<c10::IValue>());
  return Linear1::apply(x.contiguous(), weight, static_cast<int64_t>(layout));
}

torch::Tensor affine(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  if (!torch::GradMode::is_enabled() || !can_fuse({x, weight, bias}) || !weight.is_contiguous()) {
    return torch::linear(x, weight, bias);
  }
  ASSAY_CHECK(x.size(-1) == weight.size(1), "x and the weight do not fit");
  RECORD_FUNCTION("assay::affine", std::vector<c10::IValue>());
  return BiasedLinear::apply(x.contiguous(), weight, bias);
}

torch::Tensor linear3(const torch::Tensor& x, const torch::Tensor& first, const torch::Tensor& second,
                      const torch::Tensor& third) {
  if (!can_fuse({x, first, second, third}) || !first.is_contiguous() || !second.is_contiguous() ||
      !third.is_contiguous()) {
    return torch::linear(x, torch::cat({first, second, third}));
  }
  ASSAY_CHECK(x.size(-1) == first.size(1) && first.sizes() == second.sizes() && first.sizes() == third.sizes(),
              "x and the weights do not fit");
  RECORD_FUNCTION("assay::linear3", std::vector<c10::IValue>());
  return Linear3::apply(x.contiguous(), first, second, third);
}

}  // namespace assay
