// The loops of attention.h for one head of one sample, one copy for each vector width.
//
// Shapes: T sequence, d width of a head. Queries and keys are taken in blocks of 64; a block's scores live in the
// first-level cache and are never written out.
#pragma once

#include <cstdint>

#include "kernels/philox.h"

namespace assay {

// One head of one sample inside packed tensors: rows are `stride` elements apart.
template <typename T>
struct AttentionHead {
  int64_t length = 0;      // T
  int64_t head_width = 0;  // d
  int64_t stride = 0;      // of rows of q, k, v and their gradients
  int64_t out_stride = 0;  // of rows of out and dout
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
  const T* q_bias = nullptr;  // [d], added to q, and so on; null: nothing
  const T* k_bias = nullptr;
  const T* v_bias = nullptr;
  const bool* key_mask = nullptr;  // [T], false: nobody looks at this key; null: all may be looked at
  double scale = 1;                // of scores
  bool causal = false;
  int64_t prefix = 0;  // with causal: keys below it are seen by all queries
  DropoutKey dropout{};
  uint64_t first_row = 0;  // of this head in the dropout's matrix [B * H * T, T]
};

// Elements of scratch memory that a head needs in either pass.
int64_t attention_scratch_size(int64_t length, int64_t head_width);

template <typename T>
struct AttentionForwardArgs {
  AttentionHead<T> head;
  T* out;      // [T, d]
  T* log_sum;  // [T], log of the sum of exp(scores) of each query; infinity when it sees no key
  T* scratch;  // attention_scratch_size() elements
};
// out = dropout(softmax(scale q k^T + mask)) v
template <typename T>
void run_attention_forward(const AttentionForwardArgs<T>& args);

template <typename T>
struct AttentionBackwardArgs {
  AttentionHead<T> head;
  const T* out;
  const T* dout;
  const T* log_sum;
  T* dq;  // stride as q
  T* dk;
  T* dv;
  T* dq_bias;  // [d], sums over the rows; null: not wanted
  T* dk_bias;
  T* dv_bias;
  T* scratch;
};
template <typename T>
void run_attention_backward(const AttentionBackwardArgs<T>& args);

}  // namespace assay
