// The loops of the fused optimizer over a stretch of memory, in float and double, one copy per vector width, chosen at
// run time. They know nothing of tensors, threads or names.
#pragma once

#include <cstdint>

namespace assay {

enum class UpdateRule { Sgd, Momentum, Nesterov, Adam, AdamW, Adagrad, LambMoments, LambWeights };

// Elements in the order they have in memory. What a rule does not need may be null.
template <typename T>
struct UpdateSpan {
  T* weight = nullptr;
  const T* gradient = nullptr;
  T* first = nullptr;   // momentum, first moment
  T* second = nullptr;  // second moment, sum of squares
  int64_t count = 0;
};

// What an update needs besides the tensors, already in the type of the weights.
template <typename T>
struct UpdateFactors {
  T rate, decay, momentum, beta1, beta2, epsilon;
  T rest1, rest2;  // 1 - beta, from double: in float 1 - 0.999 is off by 5e-5
  T scale;         // of gradients: from clipping and from the loss scale
  T correction1;   // 1 / (1 - beta1^t)
  T correction2;   // 1 / (1 - beta2^t)
};

// What a user has set, and how many updates there are with this one.
struct UpdateSettings {
  double rate = 0;
  double weight_decay = 0, momentum = 0, beta1 = 0, beta2 = 0, epsilon = 0;
  double scale = 1;
  int64_t num_updates = 1;
};
template <typename T>
UpdateFactors<T> update_factors(const UpdateSettings& settings);

// Sums of squares over the stretch; LambMoments fills them.
struct UpdateNorms {
  double weight = 0;
  double change = 0;
};

template <typename T>
using UpdateKernel = void (*)(UpdateSpan<T>, UpdateFactors<T>, UpdateNorms*);
template <typename T>
UpdateKernel<T> update_kernel(UpdateRule rule);

// The sum of squares, in double. Always added in the same order.
template <typename T>
using SquaresKernel = double (*)(const T*, int64_t);
template <typename T>
SquaresKernel<T> squares_kernel();

}  // namespace assay
