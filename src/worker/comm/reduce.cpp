#include "comm/reduce.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"

namespace assay::comm {

size_t size_of(DType type) {
  switch (type) {
    case DType::F64:
    case DType::I64: return 8;
    case DType::F32:
    case DType::I32: return 4;
    case DType::BF16:
    case DType::F16: return 2;
    case DType::U8: return 1;
  }
  return 1;
}

DType partial_type(DType type) { return type == DType::BF16 || type == DType::F16 ? DType::F32 : type; }

namespace {

// Inlined into one copy per instruction set, so that the compiler vectorises each for its own.
#define ASSAY_KERNEL __attribute__((always_inline)) inline

constexpr int64_t kBlock = 1024;  // elements; a block of partial results stays in the first-level cache

struct SumOf {
  template <typename T>
  ASSAY_KERNEL T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;  // wraps around without undefined behaviour
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    } else {
      return a + b;
    }
  }
};
// A NaN on either side wins: the comparison with it is false, and a is requested for itself.
struct MinOf {
  template <typename T>
  ASSAY_KERNEL T operator()(T a, T b) const {
    return (a < b || a != a) ? a : b;
  }
};
struct MaxOf {
  template <typename T>
  ASSAY_KERNEL T operator()(T a, T b) const {
    return (a > b || a != a) ? a : b;
  }
};

template <typename T, typename Op>
ASSAY_KERNEL void two_to_two(const T* a, const T* b, T* x, T* y, int64_t count, Op op) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const T value = op(a[i], b[i]);
    x[i] = value;
    y[i] = value;
  }
}

template <typename T, typename Op>
ASSAY_KERNEL void two_to_one(const T* a, const T* b, T* x, int64_t count, Op op) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) x[i] = op(a[i], b[i]);
}

template <typename T, typename Op>
ASSAY_KERNEL void four_to_one(const T* a, const T* b, const T* c, const T* d, T* x, int64_t count, Op op) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) x[i] = op(op(op(a[i], b[i]), c[i]), d[i]);
}

template <typename T, typename Op>
ASSAY_KERNEL void block_of(const void* const* inputs, size_t num_inputs, int64_t from, int64_t count, T* block, Op op) {
  const auto input = [&](size_t i) { return static_cast<const T*>(inputs[i]) + from; };
  size_t next = 2;
  if (num_inputs == 1) {
    std::memcpy(block, input(0), static_cast<size_t>(count) * sizeof(T));
    return;
  }
  if (num_inputs >= 4) {
    four_to_one(input(0), input(1), input(2), input(3), block, count, op);
    next = 4;
  } else {
    two_to_one(input(0), input(1), block, count, op);
  }
  for (; next < num_inputs; ++next) two_to_one<T>(block, input(next), block, count, op);
}

template <typename T, typename Op>
ASSAY_KERNEL void combine_plainly(const void* const* inputs, size_t num_inputs, void* const* outputs,
                                  size_t num_outputs, int64_t count, Op op) {
  const auto output = [&](size_t i, int64_t from) { return static_cast<T*>(outputs[i]) + from; };
  if (num_inputs == 2 && num_outputs == 2) {
    two_to_two(static_cast<const T*>(inputs[0]), static_cast<const T*>(inputs[1]), output(0, 0), output(1, 0), count,
               op);
    return;
  }
  if (num_inputs == 2 && num_outputs == 1) {
    two_to_one(static_cast<const T*>(inputs[0]), static_cast<const T*>(inputs[1]), output(0, 0), count, op);
    return;
  }
  alignas(64) T block[kBlock];
  for (int64_t from = 0; from < count; from += kBlock) {
    const int64_t part = std::min(kBlock, count - from);
    block_of<T>(inputs, num_inputs, from, part, block, op);
    for (size_t i = 0; i < num_outputs; ++i) std::memcpy(output(i, from), block, static_cast<size_t>(part) * sizeof(T));
  }
}

// Sums of memory that other cores have written, in place. Reading a line of theirs and writing it later costs two trips
// to them; asking for it as one's own before reading it costs one.
// kNum: how many, where it is known in advance; 0 otherwise.
template <typename T, size_t kNum>
ASSAY_KERNEL void sum_lines(T* const* memory, size_t num_memory, int64_t count) {
  typedef T Line __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
  constexpr int64_t kLine = 64 / sizeof(T);
  constexpr int64_t kAhead = 8 * kLine;
  const size_t num = kNum > 0 ? kNum : num_memory;
  int64_t done = 0;
  for (; done + kLine <= count; done += kLine) {
    for (size_t i = 0; i < num; ++i) __asm__ volatile("prefetchw %0" : : "m"(memory[i][done + kAhead]));
    Line sum = *reinterpret_cast<const Line*>(memory[0] + done);
    for (size_t i = 1; i < num; ++i) sum += *reinterpret_cast<const Line*>(memory[i] + done);
    for (size_t i = 0; i < num; ++i) *reinterpret_cast<Line*>(memory[i] + done) = sum;
  }
  for (; done < count; ++done) {
    T sum = memory[0][done];
    for (size_t i = 1; i < num; ++i) sum += memory[i][done];
    for (size_t i = 0; i < num; ++i) memory[i][done] = sum;
  }
}

template <typename T>
ASSAY_KERNEL void sum_in_place(void* const* memory, size_t num, int64_t count) {
  T* const* typed = reinterpret_cast<T* const*>(memory);
  if (num == 2) {
    T* const two[] = {typed[0], typed[1]};
    sum_lines<T, 2>(two, 2, count);
  } else if (num == 4) {
    T* const four[] = {typed[0], typed[1], typed[2], typed[3]};
    sum_lines<T, 4>(four, 4, count);
  } else {
    sum_lines<T, 0>(typed, num, count);
  }
}

// --- 16-bit types: to float32, added there, and back once. Conversions of whole blocks.

ASSAY_KERNEL void widen_bf16(const uint16_t* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = std::bit_cast<float>(static_cast<uint32_t>(from[i]) << 16);
}

ASSAY_KERNEL void narrow_bf16(const float* from, uint16_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<uint32_t>(from[i]);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const uint32_t nan = (bits >> 16) | 0x40u;
    to[i] = static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
  }
}

float widen_f16_one(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t fraction = half & 0x3ffu;
  if (exponent == 31) {  // infinity, or a NaN made quiet
    return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13) | (fraction ? 0x400000u : 0u));
  }
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (fraction << 13));
  const float small = static_cast<float>(fraction) * 0x1p-24f;
  return sign ? -small : small;
}

uint16_t narrow_f16_one(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((size >> 13) & 0x3ffu));
  if (size >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and more round to infinity
  if (size < 0x38800000u) {  // below 2^-14 halves have a fixed step, that of float32 at 0.5: the addition rounds to it
    const float shifted = std::bit_cast<float>(size) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = size + 0xfffu + ((size >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

void widen_f16_plain(const uint16_t* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = widen_f16_one(from[i]);
}

void narrow_f16_plain(const float* from, uint16_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = narrow_f16_one(from[i]);
}

__attribute__((target("avx2,f16c"))) void widen_f16_vector(const uint16_t* from, float* to, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
  widen_f16_plain(from + i, to + i, count - i);
}

__attribute__((target("avx2,f16c"))) void narrow_f16_vector(const float* from, uint16_t* to, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
  narrow_f16_plain(from + i, to + i, count - i);
}

// --- one table of loops per instruction set

using CombineLoop = void (*)(const void* const* inputs, size_t num_inputs, void* const* outputs, size_t num_outputs,
                             int64_t count);
using InPlaceLoop = void (*)(void* const* memory, size_t num, int64_t count);
using WidenLoop = void (*)(const uint16_t* from, float* to, int64_t count);
using NarrowLoop = void (*)(const float* from, uint16_t* to, int64_t count);

struct Loops {
  const char* name;
  CombineLoop combine[3][5];  // by operation; double, float, int64, int32, uint8
  InPlaceLoop in_place[2];    // sums; double, float
  WidenLoop widen[2];         // bf16, f16
  NarrowLoop narrow[2];
};

#define ASSAY_COPY_FOR(LEVEL, ATTRIBUTE)                                                                             \
  template <typename T, typename Op>                                                                                 \
  ATTRIBUTE void combine_##LEVEL(const void* const* inputs, size_t num_inputs, void* const* outputs,                 \
                                 size_t num_outputs, int64_t count) {                                                \
    combine_plainly<T>(inputs, num_inputs, outputs, num_outputs, count, Op());                                       \
  }                                                                                                                  \
  template <typename T>                                                                                              \
  ATTRIBUTE void in_place_##LEVEL(void* const* memory, size_t num, int64_t count) {                                  \
    sum_in_place<T>(memory, num, count);                                                                             \
  }                                                                                                                  \
  ATTRIBUTE void widen_bf16_##LEVEL(const uint16_t* from, float* to, int64_t count) { widen_bf16(from, to, count); } \
  ATTRIBUTE void narrow_bf16_##LEVEL(const float* from, uint16_t* to, int64_t count) { narrow_bf16(from, to, count); }

#define ASSAY_ROW(LEVEL, OP)                                                               \
  {                                                                                        \
    combine_##LEVEL<double, OP>, combine_##LEVEL<float, OP>, combine_##LEVEL<int64_t, OP>, \
        combine_##LEVEL<int32_t, OP>, combine_##LEVEL<uint8_t, OP>                         \
  }
#define ASSAY_TABLE(LEVEL, F16)                                                                                  \
  {                                                                                                              \
#LEVEL, {ASSAY_ROW(LEVEL, SumOf), ASSAY_ROW(LEVEL, MinOf), ASSAY_ROW(LEVEL, MaxOf) },                        \
             {in_place_##LEVEL < double>, in_place_##LEVEL < float> }, {widen_bf16_##LEVEL, widen_f16_##F16 }, { \
      narrow_bf16_##LEVEL, narrow_f16_##F16                                                                      \
    }                                                                                                            \
  }

ASSAY_COPY_FOR(plain, )
ASSAY_COPY_FOR(avx2, __attribute__((target("avx2"))))
ASSAY_COPY_FOR(avx512, __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512"))))

const Loops& loops() {
  static const Loops kPlain = ASSAY_TABLE(plain, plain);
  static const Loops kAvx2 = ASSAY_TABLE(avx2, vector);
  static const Loops kAvx512 = ASSAY_TABLE(avx512, vector);
  static const Loops& chosen = []() -> const Loops& {
    const char* requested = std::getenv("ASSAY_SIMD");
    const std::string limit = requested ? requested : "";
    if (limit == "plain" || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("f16c")) return kPlain;
    if (limit == "avx2" || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl") ||
        !__builtin_cpu_supports("avx512dq")) {
      return kAvx2;
    }
    return kAvx512;
  }();
  return chosen;
}

int index_of(DType type) {
  switch (type) {
    case DType::F64: return 0;
    case DType::I64: return 2;
    case DType::I32: return 3;
    case DType::U8: return 4;
    default: return 1;  // F32, and what is added in it
  }
}

// One block: inputs from element `from` on, added to `block` in their order.
void half_block(const std::vector<const void*>& inputs, int64_t from, int64_t count, DType type, ReduceOp op,
                bool continued, float* block) {
  alignas(64) float next[kBlock];
  const WidenLoop widen = loops().widen[type == DType::F16];
  const CombineLoop add = loops().combine[static_cast<int>(op)][1];
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint16_t* input = static_cast<const uint16_t*>(inputs[i]) + from;
    if (i == 0 && !continued) {
      widen(input, block, count);
      continue;
    }
    widen(input, next, count);
    const void* both[] = {block, next};
    void* out[] = {block};
    add(both, 2, out, 1, count);
  }
}

}  // namespace

const char* combine_level() { return loops().name; }

void combine(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, int64_t count, DType type,
             ReduceOp op) {
  if (op == ReduceOp::Sum && (type == DType::F32 || type == DType::F64) &&
      std::equal(inputs.begin(), inputs.end(), outputs.begin(), outputs.end())) {
    loops().in_place[type == DType::F32](outputs.data(), outputs.size(), count);
    return;
  }
  if (partial_type(type) == type) {
    loops().combine[static_cast<int>(op)][index_of(type)](inputs.data(), inputs.size(), outputs.data(), outputs.size(),
                                                          count);
    return;
  }
  alignas(64) float block[kBlock];
  alignas(64) uint16_t rounded[kBlock];
  for (int64_t from = 0; from < count; from += kBlock) {
    const int64_t part = std::min(kBlock, count - from);
    half_block(inputs, from, part, type, op, false, block);
    loops().narrow[type == DType::F16](block, rounded, part);
    for (void* output : outputs)
      std::memcpy(static_cast<uint16_t*>(output) + from, rounded, static_cast<size_t>(part) * 2);
  }
}

void combine_partial(void* partial, bool continued, const std::vector<const void*>& inputs, int64_t count, DType type,
                     ReduceOp op) {
  if (partial_type(type) != type) {
    for (int64_t from = 0; from < count; from += kBlock) {
      half_block(inputs, from, std::min(kBlock, count - from), type, op, continued,
                 static_cast<float*>(partial) + from);
    }
    return;
  }
  std::vector<const void*> all;
  if (continued) all.push_back(partial);
  all.insert(all.end(), inputs.begin(), inputs.end());
  combine(all, {partial}, count, type, op);
}

void finish_partial(const void* partial, void* output, int64_t count, DType type) {
  if (partial_type(type) == type) {
    if (partial != output) std::memcpy(output, partial, static_cast<size_t>(count) * size_of(type));
    return;
  }
  loops().narrow[type == DType::F16](static_cast<const float*>(partial), static_cast<uint16_t*>(output), count);
}

}  // namespace assay::comm
