#include "kernels/attention_kernels.h"

#include <algorithm>
#include <bit>

namespace assay {

namespace {

using simd::kLanes;
using simd::load;
using simd::store;
using simd::Vec;

constexpr int64_t kBlock = 64;  // queries and keys of a block: 64 x 64 floats are a third of a first-level cache
constexpr int64_t kTileRows = 4;
static_assert(kBlock == kPhiloxBatch);

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

template <typename T>
struct Strided {
  const T* data;
  int64_t row_stride, column_stride;
};

// c[Rows, Vecs vectors] (+)= a[Rows, depth] b[depth, Vecs vectors], the sums held in registers.
template <typename T, int Bytes, int Vecs, bool Add>
ASSAY_INLINE void tile(Strided<T> a, const T* __restrict b, int64_t b_stride, T* __restrict c, int64_t c_stride,
                       int64_t depth) {
  using V = Vec<T, Bytes>;
  constexpr int64_t kL = kLanes<T, Bytes>;
  V sums[kTileRows][Vecs];
#pragma GCC unroll 4
  for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Vecs; ++v) sums[r][v] = Add ? load<V>(c + r * c_stride + v * kL) : V{};
  }
  for (int64_t k = 0; k < depth; ++k) {
    V row[Vecs];
#pragma GCC unroll 4
    for (int v = 0; v < Vecs; ++v) row[v] = load<V>(b + k * b_stride + v * kL);
#pragma GCC unroll 4
    for (int r = 0; r < kTileRows; ++r) {
      const T factor = a.data[r * a.row_stride + k * a.column_stride];
#pragma GCC unroll 4
      for (int v = 0; v < Vecs; ++v) sums[r][v] += factor * row[v];
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Vecs; ++v) store(c + r * c_stride + v * kL, sums[r][v]);
  }
}

// c[64, columns] (+)= a[64, depth] b[depth, columns]; columns is a multiple of 16.
template <typename T, int Bytes, bool Add>
ASSAY_INLINE void multiply(Strided<T> a, const T* b, int64_t b_stride, T* c, int64_t columns, int64_t depth) {
  constexpr int kVecs = Bytes == 64 ? 4 : 2;  // with four rows: as many sums as there are registers for
  constexpr int64_t kL = kLanes<T, Bytes>;
  int64_t n = 0;
  for (; n + kVecs * kL <= columns; n += kVecs * kL) {
    for (int64_t m = 0; m < kBlock; m += kTileRows) {
      tile<T, Bytes, kVecs, Add>({a.data + m * a.row_stride, a.row_stride, a.column_stride}, b + n, b_stride,
                                 c + m * columns + n, columns, depth);
    }
  }
  for (; n < columns; n += kL) {
    for (int64_t m = 0; m < kBlock; m += kTileRows) {
      tile<T, Bytes, 1, Add>({a.data + m * a.row_stride, a.row_stride, a.column_stride}, b + n, b_stride,
                             c + m * columns + n, columns, depth);
    }
  }
}

// Sizes of the padded copies that a head works on: whole blocks of rows, whole vectors of columns, zeros where nothing
// is.
struct Padded {
  int64_t rows, columns, blocks;
  explicit Padded(int64_t length, int64_t width)
      : rows(round_up(length, kBlock)), columns(round_up(width, 16)), blocks(rows / kBlock) {}
  int64_t matrix() const { return rows * columns; }
};

constexpr int64_t kAlign = 64;  // elements between parts: a multiple of the widest vector in either type

// Hands out aligned parts of one piece of memory.
template <typename T>
class Workspace {
 public:
  explicit Workspace(T* memory) : next_(memory) {
    const auto address = static_cast<int64_t>(std::bit_cast<uintptr_t>(memory));
    next_ += (round_up(address, 64) - address) / static_cast<int64_t>(sizeof(T));
  }
  T* take(int64_t num_elements) {
    T* part = next_;
    next_ += round_up(num_elements, kAlign);
    return part;
  }

 private:
  T* next_;
};

template <typename T>
constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));  // elements of a cache line
constexpr int64_t kAhead = 8;                                    // rows

template <typename T>
struct Source {
  const T* data;
  int64_t stride;
  const T* bias;
  T factor;
};

// to[rows, columns] = (from + bias) * factor, zero outside [length, width].
template <typename T>
ASSAY_INLINE void pack(const Source<T>& from, int64_t length, int64_t width, const Padded& size, T* __restrict to) {
  for (int64_t r = 0; r < size.rows; ++r) {
    T* __restrict row = to + r * size.columns;
    if (r >= length) {
      std::fill(row, row + size.columns, T(0));
      continue;
    }
    const T* __restrict source = from.data + r * from.stride;
    // Rows are far apart, a pattern that the processor does not follow by itself.
    for (int64_t c = 0; c < width; c += kLine<T>) __builtin_prefetch(source + kAhead * from.stride + c);
    const T* __restrict bias = from.bias;
    if (bias) {
      for (int64_t c = 0; c < width; ++c) row[c] = (source[c] + bias[c]) * from.factor;
    } else {
      for (int64_t c = 0; c < width; ++c) row[c] = source[c] * from.factor;
    }
    std::fill(row + width, row + size.columns, T(0));
  }
}

// Blocks of 64 rows, each transposed to [width, 64]: what the right factor of a product with keys needs.
template <typename T>
ASSAY_INLINE void transpose_blocks(const T* __restrict from, int64_t width, const Padded& size, T* __restrict to) {
  for (int64_t block = 0; block < size.blocks; ++block) {
    const T* __restrict source = from + block * kBlock * size.columns;
    T* __restrict target = to + block * kBlock * width;
    for (int64_t r0 = 0; r0 < kBlock; r0 += 16) {
      for (int64_t c = 0; c < width; ++c) {
        for (int64_t r = r0; r < r0 + 16; ++r) target[c * kBlock + r] = source[r * size.columns + c];
      }
    }
  }
}

// Scores of keys that must not be seen become minus infinity.
template <typename T>
ASSAY_INLINE void hide_keys(const AttentionHead<T>& h, int64_t query, int64_t key, T* __restrict scores) {
  constexpr T kHidden = -std::numeric_limits<T>::infinity();
  if (h.causal && key >= query) {
    for (int64_t r = 0; r < kBlock; ++r) {
      const int64_t first_hidden = std::clamp<int64_t>(std::max(query + r + 1, h.prefix) - key, 0, kBlock);
      std::fill(scores + r * kBlock + first_hidden, scores + (r + 1) * kBlock, kHidden);
    }
  }
  if (!h.key_mask && key + kBlock <= h.length) return;
  for (int64_t c = 0; c < kBlock; ++c) {
    if (key + c < h.length && (!h.key_mask || h.key_mask[key + c])) continue;
    for (int64_t r = 0; r < kBlock; ++r) scores[r * kBlock + c] = kHidden;
  }
}

// The running softmax of a block of queries (Milakov and Gimelshein 2018).
template <typename T>
struct Softmax {
  T max[kBlock];
  T sum[kBlock];
  T correction[kBlock];  // what earlier sums and outputs are multiplied by
};

// Scores become exp(scores - max); max and sum take this block in.
template <typename T, int Bytes>
ASSAY_INLINE void softmax_step(Softmax<T>& state, T* __restrict scores) {
  using V = Vec<T, Bytes>;
  constexpr int64_t kL = kLanes<T, Bytes>;
  constexpr T kHidden = -std::numeric_limits<T>::infinity();
  T shift[kBlock];
  for (int64_t r = 0; r < kBlock; ++r) {
    V max = load<V>(scores + r * kBlock);
    for (int64_t c = kL; c < kBlock; c += kL) {
      const V value = load<V>(scores + r * kBlock + c);
      max = value > max ? value : max;
    }
    const T block_max = simd::max_of<T, Bytes>(max);
    const T new_max = block_max > state.max[r] ? block_max : state.max[r];
    shift[r] = new_max == kHidden ? T(0) : new_max;  // no key seen yet: all terms are exp(-infinity) = 0
    state.correction[r] = state.max[r] - shift[r];
    state.max[r] = new_max;
  }
  for (int64_t r = 0; r < kBlock; r += kL) {
    store(state.correction + r, simd::exp_of<T, Bytes>(load<V>(state.correction + r)));
  }
  for (int64_t r = 0; r < kBlock; ++r) {
    V sum{};
    for (int64_t c = 0; c < kBlock; c += kL) {
      const V term = simd::exp_of<T, Bytes>(load<V>(scores + r * kBlock + c) - shift[r]);
      sum += term;
      store(scores + r * kBlock + c, term);
    }
    state.sum[r] = state.sum[r] * state.correction[r] + simd::sum_of<T, Bytes>(sum);
  }
}

template <typename T>
ASSAY_INLINE void drop(const AttentionHead<T>& h, int64_t query, int64_t key, T* __restrict values) {
  T factors[kBlock];
  for (int64_t r = 0; r < kBlock; ++r) {
    dropout_factors(h.dropout, h.first_row + query + r, key, factors);
    for (int64_t c = 0; c < kBlock; ++c) values[r * kBlock + c] *= factors[c];
  }
}

template <typename T>
ASSAY_INLINE void finish_block(const AttentionForwardArgs<T>& p, int64_t query, const Softmax<T>& state, const T* sums,
                               int64_t columns) {
  const int64_t count = std::min(kBlock, p.head.length - query);
  for (int64_t r = 0; r < count; ++r) {
    const bool sees = state.sum[r] != T(0);
    const T factor = sees ? 1 / state.sum[r] : T(0);
    const T* __restrict from = sums + r * columns;
    T* __restrict to = p.out + (query + r) * p.head.out_stride;
    for (int64_t c = 0; c < p.head.head_width; ++c) to[c] = from[c] * factor;
    p.log_sum[query + r] = sees ? state.max[r] + std::log(state.sum[r]) : std::numeric_limits<T>::infinity();
  }
}

template <typename T, int Bytes>
ASSAY_INLINE void attention_forward(const AttentionForwardArgs<T>& p) {
  const AttentionHead<T>& h = p.head;
  const Padded size(h.length, h.head_width);
  Workspace<T> space(p.scratch);
  T* q = space.take(size.matrix());
  T* k = space.take(size.matrix());
  T* v = space.take(size.matrix());
  T* k_blocks = space.take(size.rows * h.head_width);
  T* scores = space.take(kBlock * kBlock);
  pack<T>({h.q, h.stride, h.q_bias, static_cast<T>(h.scale)}, h.length, h.head_width, size, q);
  pack<T>({h.k, h.stride, h.k_bias, T(1)}, h.length, h.head_width, size, k);
  pack<T>({h.v, h.stride, h.v_bias, T(1)}, h.length, h.head_width, size, v);
  transpose_blocks(k, h.head_width, size, k_blocks);
  T* sums = k;  // the keys are needed transposed only; a block of queries has no more rows than they have

  Softmax<T> state;
  for (int64_t query = 0; query < size.rows; query += kBlock) {
    std::fill(sums, sums + kBlock * size.columns, T(0));
    std::fill(state.max, state.max + kBlock, -std::numeric_limits<T>::infinity());
    std::fill(state.sum, state.sum + kBlock, T(0));
    const int64_t end = h.causal ? std::max(query + kBlock, round_up(h.prefix, kBlock)) : size.rows;
    for (int64_t key = 0; key < end; key += kBlock) {
      multiply<T, Bytes, false>({q + query * size.columns, size.columns, 1}, k_blocks + key * h.head_width, kBlock,
                                scores, kBlock, h.head_width);
      hide_keys(h, query, key, scores);
      softmax_step<T, Bytes>(state, scores);
      if (h.dropout.on()) drop(h, query, key, scores);
      for (int64_t r = 0; key > 0 && r < kBlock; ++r) {
        if (state.correction[r] == T(1)) continue;
        for (int64_t c = 0; c < size.columns; ++c) sums[r * size.columns + c] *= state.correction[r];
      }
      multiply<T, Bytes, true>({scores, kBlock, 1}, v + key * size.columns, size.columns, sums, size.columns, kBlock);
    }
    finish_block(p, query, state, sums, size.columns);
  }
}

// What the backward pass of one head works on, padded.
template <typename T>
struct BackwardSpace {
  T *q, *k, *dout, *k_blocks, *v_blocks, *dq, *dk, *dv, *p, *ds, *delta;
};

template <typename T>
ASSAY_INLINE BackwardSpace<T> prepare_backward(const AttentionBackwardArgs<T>& p, const Padded& size) {
  const AttentionHead<T>& h = p.head;
  const int64_t panel = size.rows * h.head_width;
  Workspace<T> space(p.scratch);
  BackwardSpace<T> s;
  s.q = space.take(size.matrix());
  s.k = space.take(size.matrix());
  s.dout = space.take(size.matrix());
  s.k_blocks = space.take(panel);
  s.v_blocks = space.take(panel);
  s.dq = space.take(size.matrix());
  s.dk = space.take(kBlock * size.columns);
  s.dv = space.take(kBlock * size.columns);
  s.p = space.take(kBlock * kBlock);
  s.ds = space.take(kBlock * kBlock);
  s.delta = space.take(size.rows);
  pack<T>({h.v, h.stride, h.v_bias, T(1)}, h.length, h.head_width, size, s.k);
  transpose_blocks(s.k, h.head_width, size, s.v_blocks);
  pack<T>({h.k, h.stride, h.k_bias, T(1)}, h.length, h.head_width, size, s.k);
  transpose_blocks(s.k, h.head_width, size, s.k_blocks);
  pack<T>({h.q, h.stride, h.q_bias, static_cast<T>(h.scale)}, h.length, h.head_width, size, s.q);
  pack<T>({p.dout, h.out_stride, nullptr, T(1)}, h.length, h.head_width, size, s.dout);
  std::fill(s.dq, s.dq + size.matrix(), T(0));
  for (int64_t r = 0; r < size.rows; ++r) {
    T sum = 0;
    for (int64_t c = 0; r < h.length && c < h.head_width; ++c) {
      sum += s.dout[r * size.columns + c] * p.out[r * h.out_stride + c];
    }
    s.delta[r] = sum;
  }
  return s;
}

// From scores (in s.p) and the products of dout with v (in s.ds): s.p = probabilities after dropout, s.ds = the
// gradient of the scores.
template <typename T, int Bytes>
ASSAY_INLINE void softmax_backward(const AttentionBackwardArgs<T>& p, const BackwardSpace<T>& s, int64_t query,
                                   int64_t key) {
  using V = Vec<T, Bytes>;
  constexpr int64_t kL = kLanes<T, Bytes>;
  T factors[kBlock];
  for (int64_t r = 0; r < kBlock; ++r) {
    T* __restrict probability = s.p + r * kBlock;
    T* __restrict gradient = s.ds + r * kBlock;
    const bool real = query + r < p.head.length;  // a row of padding has no part in anything
    const T log_sum = real ? p.log_sum[query + r] : std::numeric_limits<T>::infinity();
    const T delta = s.delta[query + r];
    if (p.head.dropout.on()) dropout_factors(p.head.dropout, p.head.first_row + query + r, key, factors);
    for (int64_t c = 0; c < kBlock; c += kL) {
      const V value = simd::exp_of<T, Bytes>(load<V>(probability + c) - log_sum);
      if (p.head.dropout.on()) {
        const V factor = load<V>(factors + c);
        store(gradient + c, value * (load<V>(gradient + c) * factor - delta));
        store(probability + c, value * factor);
      } else {
        store(gradient + c, value * (load<V>(gradient + c) - delta));
        store(probability + c, value);
      }
    }
  }
}

// to[count, d] = from * factor, and its column sums added to bias.
template <typename T>
ASSAY_INLINE void unpack(const T* __restrict from, int64_t columns, int64_t count, const AttentionHead<T>& h, T factor,
                         T* __restrict to, T* __restrict bias) {
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t c = 0; c < h.head_width; c += kLine<T>) __builtin_prefetch(to + (r + kAhead) * h.stride + c, 1);
    for (int64_t c = 0; c < h.head_width; ++c) to[r * h.stride + c] = from[r * columns + c] * factor;
    if (!bias) continue;
    for (int64_t c = 0; c < h.head_width; ++c) bias[c] += from[r * columns + c] * factor;
  }
}

template <typename T, int Bytes>
ASSAY_INLINE void attention_backward(const AttentionBackwardArgs<T>& p) {
  const AttentionHead<T>& h = p.head;
  const Padded size(h.length, h.head_width);
  const int64_t n = size.columns;
  const BackwardSpace<T> s = prepare_backward(p, size);
  for (T* bias : {p.dq_bias, p.dk_bias, p.dv_bias}) {
    if (bias) std::fill(bias, bias + h.head_width, T(0));
  }
  for (int64_t key = 0; key < size.rows; key += kBlock) {
    std::fill(s.dk, s.dk + kBlock * n, T(0));
    std::fill(s.dv, s.dv + kBlock * n, T(0));
    for (int64_t query = h.causal && key >= h.prefix ? key : 0; query < size.rows; query += kBlock) {
      const T* q = s.q + query * n;
      const T* dout = s.dout + query * n;
      multiply<T, Bytes, false>({q, n, 1}, s.k_blocks + key * h.head_width, kBlock, s.p, kBlock, h.head_width);
      hide_keys(h, query, key, s.p);
      multiply<T, Bytes, false>({dout, n, 1}, s.v_blocks + key * h.head_width, kBlock, s.ds, kBlock, h.head_width);
      softmax_backward<T, Bytes>(p, s, query, key);
      multiply<T, Bytes, true>({s.p, 1, kBlock}, dout, n, s.dv, n, kBlock);
      multiply<T, Bytes, true>({s.ds, 1, kBlock}, q, n, s.dk, n, kBlock);
      multiply<T, Bytes, true>({s.ds, kBlock, 1}, s.k + key * n, n, s.dq + query * n, n, kBlock);
    }
    const int64_t count = std::min(kBlock, h.length - key);
    unpack(s.dk, n, count, h, T(1), p.dk + key * h.stride, p.dk_bias);
    unpack(s.dv, n, count, h, T(1), p.dv + key * h.stride, p.dv_bias);
  }
  unpack(s.dq, n, h.length, h, static_cast<T>(h.scale), p.dq, p.dq_bias);
}

}  // namespace

// Of the backward pass, which needs more.
int64_t attention_scratch_size(int64_t length, int64_t head_width) {
  const Padded size(length, head_width);
  constexpr int64_t kParts = 11;
  return 4 * size.matrix() + 2 * size.rows * head_width + 2 * kBlock * size.columns + 2 * kBlock * kBlock + size.rows +
         (kParts + 1) * kAlign;
}

ASSAY_SIMD_KERNEL(attention_forward, AttentionForwardArgs)
ASSAY_SIMD_KERNEL(attention_backward, AttentionBackwardArgs)

template void run_attention_forward(const AttentionForwardArgs<float>&);
template void run_attention_forward(const AttentionForwardArgs<double>&);
template void run_attention_backward(const AttentionBackwardArgs<float>&);
template void run_attention_backward(const AttentionBackwardArgs<double>&);

}  // namespace assay
