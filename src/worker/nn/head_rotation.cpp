#include "nn/head_rotation.h"

#include <ATen/record_function.h>
#include <torch/autograd.h>

#include "base/error.h"
#include "nn/fused.h"

namespace assay {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The queries and keys of one token, `width` numbers, turned by its angles; direction -1 turns them back.
template <typename T>
void turn_token(T* x, int64_t width, const T* cosines, const T* sines, const HeadRotation& rotation, T direction) {
  const int64_t num_parts = rotation.cosines.size(2), num_pairs = rotation.cosines.size(3);
  for (int64_t at = 0, part = 0; at < width; at += 2 * num_pairs, part = (part + 1) % num_parts) {
    T* __restrict low = x + at;
    T* __restrict high = low + num_pairs;
    const T* __restrict c = cosines + part * num_pairs;
    const T* __restrict s = sines + part * num_pairs;
    for (int64_t i = 0; i < num_pairs; ++i) {
      const T a = low[i], b = high[i], turn = direction * s[i];
      low[i] = a * c[i] - b * turn;
      high[i] = b * c[i] + a * turn;
    }
  }
}

template <typename T>
torch::Tensor forward_rotation(const torch::Tensor& qkv, const torch::Tensor& bias, const HeadRotation& rotation) {
  torch::Tensor out = torch::empty_like(qkv);
  const int64_t width = qkv.size(2), angles = rotation.cosines.size(2) * rotation.cosines.size(3);
  each_row_piece(qkv.numel() / width, [&](int64_t, int64_t begin, int64_t end) {
    const T* __restrict add = bias.data_ptr<T>();
    for (int64_t row = begin; row < end; ++row) {
      const T* __restrict from = qkv.data_ptr<T>() + row * width;
      T* __restrict to = out.data_ptr<T>() + row * width;
      for (int64_t i = 0; i < width; ++i) to[i] = from[i] + add[i];
      turn_token<T>(to, width / 3 * 2, rotation.cosines.data_ptr<T>() + row * angles,
                    rotation.sines.data_ptr<T>() + row * angles, rotation, 1);
    }
  });
  return out;
}

struct RotationGradients {
  torch::Tensor qkv, bias;
};

template <typename T>
RotationGradients backward_rotation(const torch::Tensor& dout, const HeadRotation& rotation) {
  const int64_t width = dout.size(2), angles = rotation.cosines.size(2) * rotation.cosines.size(3);
  torch::Tensor dqkv = torch::empty_like(dout);
  PieceSums<T> sums(dout.numel() / width, width);
  each_row_piece(dout.numel() / width, [&](int64_t piece, int64_t begin, int64_t end) {
    T* __restrict sum = sums.of(piece);
    for (int64_t row = begin; row < end; ++row) {
      T* __restrict to = dqkv.data_ptr<T>() + row * width;
      std::copy_n(dout.data_ptr<T>() + row * width, width, to);
      turn_token<T>(to, width / 3 * 2, rotation.cosines.data_ptr<T>() + row * angles,
                    rotation.sines.data_ptr<T>() + row * angles, rotation, -1);
      for (int64_t i = 0; i < width; ++i) sum[i] += to[i];
    }
  });
  return {dqkv, sums.total()};
}

class RotateHeads : public torch::autograd::Function<RotateHeads> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& qkv, const torch::Tensor& bias,
                               const torch::Tensor& cosines, const torch::Tensor& sines) {
    context->save_for_backward({cosines, sines});
    const HeadRotation rotation{cosines, sines};
    return is_float(qkv) ? forward_rotation<float>(qkv, bias, rotation) : forward_rotation<double>(qkv, bias, rotation);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const HeadRotation rotation{saved[0], saved[1]};
    const torch::Tensor dout = gradients[0].contiguous();
    const RotationGradients g =
        is_float(dout) ? backward_rotation<float>(dout, rotation) : backward_rotation<double>(dout, rotation);
    return {g.qkv, g.bias, {}, {}};
  }
};

}  // namespace

torch::Tensor plain_rotate_heads(const torch::Tensor& qkv, const torch::Tensor& bias, const HeadRotation& rotation) {
  const int64_t num_parts = rotation.cosines.size(2), num_pairs = rotation.cosines.size(3);
  const torch::Tensor biased = qkv + bias;
  const auto parts = biased.chunk(3, -1);
  const torch::Tensor c = rotation.cosines.unsqueeze(2), s = rotation.sines.unsqueeze(2);  // [B, T, 1, P, pairs]
  const auto turned = [&](const torch::Tensor& x) {
    const torch::Tensor pairs = x.unflatten(-1, {-1, num_parts, 2, num_pairs});  // [B, T, H, P, 2, pairs]
    const torch::Tensor low = pairs.select(4, 0), high = pairs.select(4, 1);
    return torch::stack({low * c - high * s, high * c + low * s}, 4).flatten(2);
  };
  return torch::cat({turned(parts[0]), turned(parts[1]), parts[2]}, -1);
}

torch::Tensor rotate_heads(const torch::Tensor& qkv, const torch::Tensor& bias, const HeadRotation& rotation) {
  const torch::Tensor &c = rotation.cosines, &s = rotation.sines;
  ASSAY_CHECK(qkv.dim() == 3 && bias.numel() == qkv.size(2) && c.dim() == 4 && c.sizes() == s.sizes() &&
                  c.sizes().slice(0, 2) == qkv.sizes().slice(0, 2) && qkv.size(2) % (6 * c.size(2) * c.size(3)) == 0,
              "rotating heads needs qkv [B, T, 3 D], bias [3 D] and angles [B, T, P, d / P / 2]");
  if (!can_fuse({qkv, bias, c, s})) return plain_rotate_heads(qkv, bias, rotation);
  RECORD_FUNCTION("assay::rotate_heads", std::vector<c10::IValue>());
  return RotateHeads::apply(qkv.contiguous(), bias.contiguous(), c.contiguous(), s.contiguous());
}

}  // namespace assay
