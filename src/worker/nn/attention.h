// Attention in one pass over blocks of queries and keys, forward and backward (Dao et al. 2022): scores are never
// written to memory, and what is kept for the backward pass is one number a query.
//
// Shapes: B batch, T sequence, D model, H heads.
#pragma once

#include <torch/types.h>

#include "nn/rotary.h"

namespace assay {

struct AttentionOptions {
  int64_t num_heads = 1;
  bool causal = false;          // a query sees the keys up to its own position
  torch::Tensor key_mask = {};  // [B, T] bool, false: nobody sees this key; undefined: all are seen
  torch::Tensor prefix = {};    // [B] int64, with causal: every query sees the first so many keys too; undefined: none
  double dropout = 0;           // probability that a weight becomes 0; the caller passes 0 in evaluation
  uint64_t dropout_stream = 0;  // heads of other processes that drew the same seed have another one
  HeadRotation rotation = {};   // of queries and keys, behind the bias; undefined: none
};

// qkv [B, T, 3 D], for every position its query, key and value, the heads side by side in each; bias [3 D] is added to
// it. Returns [B, T, D] = dropout(softmax(q k^T / sqrt(D / H))) v, the heads side by side. A query that sees no key
// gets 0. Results do not depend on the number of threads.
torch::Tensor attention(const torch::Tensor& qkv, const torch::Tensor& bias, const AttentionOptions& options);

// The same from libtorch's operators; what export, autocast and other devices get. Dropout
// drops the same.
torch::Tensor plain_attention(const torch::Tensor& qkv, const torch::Tensor& bias, const AttentionOptions& options);

}  // namespace assay
