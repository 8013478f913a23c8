// Rotates the queries and keys that attention takes (nn/rotary.h), and adds their bias, in one pass.
//
// Shapes: B batch, T sequence, D model, H heads, d width of a head, P positions of a token.
#pragma once

#include "nn/rotary.h"

namespace assay {

// qkv [B, T, 3 D], laid out as for attention, + bias [3 D], with the queries and keys of all heads rotated; values are
// not. In each share of a head's width the pairs are (i, i + d / P / 2). Attention takes the result with a bias of 0.
// Results do not depend on the number of threads.
torch::Tensor rotate_heads(const torch::Tensor& qkv, const torch::Tensor& bias, const HeadRotation& rotation);

// The same from libtorch's operators; what export, autocast and other devices get.
torch::Tensor plain_rotate_heads(const torch::Tensor& qkv, const torch::Tensor& bias, const HeadRotation& rotation);

}  // namespace assay
