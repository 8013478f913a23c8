// Sums, minima and maxima of arrays, element by element. Knows memory and element types, not processes.
//
// The order of inputs is the order of addition, whatever the processor and however the arrays are cut, so every cut
// gives the same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"

namespace assay::comm {

// Each output becomes inputs[0] op inputs[1] op ... BF16 and F16 are added in float32 and rounded once, to the nearest
// even. A NaN in any input is a NaN in the result. An output may be one of the inputs; otherwise they do not overlap.
void combine(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, int64_t count, DType type,
             ReduceOp op);

// The type partial results are kept in: F32 for BF16 and F16, else the type itself.
DType partial_type(DType type);
// partial = inputs[0] op ..., or partial op inputs[0] op ... when `continued`.
void combine_partial(void* partial, bool continued, const std::vector<const void*>& inputs, int64_t count, DType type,
                     ReduceOp op);
// Rounds partial results; a copy for types that are their own partial type.
void finish_partial(const void* partial, void* output, int64_t count, DType type);

// The loops that combine() uses: "plain", "avx2", "avx512". ASSAY_SIMD=plain or avx2 asks for narrower ones.
const char* combine_level();

}  // namespace assay::comm
