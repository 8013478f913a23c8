#include "nn/linear_cross_entropy.h"

#include <ATen/record_function.h>
#include <fmt/format.h>
#include <torch/autograd.h>
#include <torch/nn/functional/loss.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernels/simd.h"
#include "nn/fused.h"
#include "nn/linear.h"

namespace assay {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Bytes of logits that exist at once. Fewer rows a group make the products that add to the gradient of the weight
// slower.
constexpr int64_t kGroupBytes = int64_t{128} << 20;

constexpr int64_t kSumPiece = 4096;  // classes whose terms are added up in T; the sums of pieces in double

template <typename T>
struct CrossEntropyArgs {
  int64_t begin, end, classes;  // rows
  T* logits;                    // in: logits; out: their gradients
  const T* bias;                // null: none
  const int64_t* label;
  T factor;      // of gradients
  double* loss;  // [rows]
};

template <typename T, int Bytes>
ASSAY_INLINE void cross_entropy_rows(const CrossEntropyArgs<T>& p) {
  using V = simd::Vec<T, Bytes>;
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  for (int64_t row = p.begin; row < p.end; ++row) {
    T* __restrict logits = p.logits + row * p.classes;
    if (p.bias) {
      for (int64_t c = 0; c < p.classes; ++c) logits[c] += p.bias[c];
    }
    const T label_logit = logits[p.label[row]];
    V highest = simd::all<V>(kLowest);
    simd::each_vector<T, Bytes>(
        p.classes, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
          const V value = simd::load_up_to<V>(logits + i, n, kLowest);
          highest = value > highest ? value : highest;
        });
    const T max = simd::max_of<T, Bytes>(highest);
    double sum = 0;
    for (int64_t first = 0; first < p.classes; first += kSumPiece) {
      V sums{};
      simd::each_vector<T, Bytes>(
          std::min(kSumPiece, p.classes - first), [&](int64_t i, int64_t n) __attribute__((always_inline)) {
            T* at = logits + first + i;
            const V term = simd::exp_of<T, Bytes>(simd::load_up_to<V>(at, n, kLowest) - max);
            sums += term;
            simd::store_up_to(at, term, n);
          });
      sum += simd::sum_of<T, Bytes>(sums);
    }
    const T share = static_cast<T>(p.factor / sum);
    for (int64_t c = 0; c < p.classes; ++c) logits[c] *= share;
    logits[p.label[row]] -= p.factor;
    p.loss[row] = std::log(sum) + (static_cast<double>(max) - label_logit);
  }
}

ASSAY_SIMD_KERNEL(cross_entropy_rows, CrossEntropyArgs)

struct LossAndGradients {
  double loss = 0;
  torch::Tensor x, weight, bias;
};

template <typename T>
LossAndGradients loss_of(const torch::Tensor& x, const VocabularyLayer& layer, const torch::Tensor& label) {
  const int64_t rows = x.size(0), width = x.size(1), classes = layer.weight.size(0);
  LossAndGradients result;
  result.x = torch::empty_like(x);
  result.weight = torch::empty_like(layer.weight);
  if (layer.bias.defined()) result.bias = torch::zeros_like(layer.bias);
  const int64_t most = std::max<int64_t>(kGroupBytes / (classes * static_cast<int64_t>(sizeof(T))), 1);
  const int64_t groups = (rows + most - 1) / most, size = (rows + groups - 1) / groups;
  torch::Tensor logits = torch::empty({size, classes}, x.options());
  T* d = logits.data_ptr<T>();
  std::vector<double> losses(rows);
  for (int64_t first = 0; first < rows; first += size) {
    const int64_t count = std::min(size, rows - first);
    const T* input = x.data_ptr<T>() + first * width;
    const T* weight = layer.weight.data_ptr<T>();
    multiply_into<T>({d, classes}, {input, width}, {weight, width, true}, {count, classes, width}, false);
    at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      run_cross_entropy_rows<T>({begin, end, classes, d, layer.bias.defined() ? layer.bias.data_ptr<T>() : nullptr,
                                 label.data_ptr<int64_t>() + first, static_cast<T>(1.0 / static_cast<double>(rows)),
                                 losses.data() + first});
    });
    multiply_into<T>({result.x.data_ptr<T>() + first * width, width}, {d, classes}, {weight, width},
                     {count, width, classes}, false);
    multiply_into<T>({result.weight.data_ptr<T>(), width}, {d, classes, true}, {input, width}, {classes, width, count},
                     first > 0);
    if (result.bias.defined()) result.bias += logits.narrow(0, 0, count).sum(0);
  }
  for (const double loss : losses) result.loss += loss;
  result.loss /= static_cast<double>(rows);
  return result;
}

class LinearCrossEntropy : public torch::autograd::Function<LinearCrossEntropy> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight,
                               const c10::optional<torch::Tensor>& bias, const torch::Tensor& label) {
    const VocabularyLayer layer{weight, bias.value_or(torch::Tensor())};
    LossAndGradients result =
        x.scalar_type() == torch::kFloat ? loss_of<float>(x, layer, label) : loss_of<double>(x, layer, label);
    std::vector<torch::Tensor> gradients{result.x, result.weight};
    if (bias) gradients.push_back(result.bias);
    context->saved_data["gradients"] = gradients;
    return torch::scalar_tensor(result.loss, x.options());
  }

  // The gradients are handed over, not copied: a second backward pass through the same loss is refused.
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto found = context->saved_data.find("gradients");
    ASSAY_CHECK(found != context->saved_data.end(), "linear_cross_entropy can be differentiated once");
    variable_list result = found->second.toTensorVector();
    context->saved_data.erase(found);
    const double factor = gradients[0].item<double>();
    if (factor != 1) {
      for (torch::Tensor& gradient : result) gradient.mul_(factor);
    }
    result.resize(4);
    return result;
  }
};

}  // namespace

void check_labels(const torch::Tensor& label, int64_t classes) {
  for (const int64_t value : {label.min().item<int64_t>(), label.max().item<int64_t>()}) {
    if (value < 0 || value >= classes) {
      throw DataError(fmt::format("label {} is not one of the {} classes, nor {} for a row that does not count", value,
                                  classes, kIgnoredLabel));
    }
  }
}

torch::Tensor linear_cross_entropy(const torch::Tensor& x, const VocabularyLayer& layer, const torch::Tensor& label) {
  ASSAY_CHECK(x.dim() == 2 && label.dim() == 1 && x.size(0) == label.size(0) && x.size(1) == layer.weight.size(1),
              "linear_cross_entropy needs x [N, D], weight [V, D] and label [N]");
  torch::Tensor rows = x, classes = label;
  if (label.eq(kIgnoredLabel).any().item<bool>()) {
    const torch::Tensor counts = label.ne(kIgnoredLabel).nonzero().squeeze(1);
    rows = x.index_select(0, counts);
    classes = label.index_select(0, counts);
  }
  if (classes.numel() > 0) check_labels(classes, layer.weight.size(0));
  const bool wanted = torch::GradMode::is_enabled() && (x.requires_grad() || layer.weight.requires_grad());
  if (!wanted || classes.numel() == 0 || !can_fuse({x, layer.weight, layer.bias}) || !layer.weight.is_contiguous()) {
    return torch::nn::functional::cross_entropy(torch::linear(rows, layer.weight, layer.bias), classes);
  }
  c10::optional<torch::Tensor> bias;
  if (layer.bias.defined()) bias = layer.bias;
  RECORD_FUNCTION("assay::linear_cross_entropy", std::vector<c10::IValue>());
  return LinearCrossEntropy::apply(rows.contiguous(), layer.weight, bias, classes.contiguous());
}

}  // namespace assay
