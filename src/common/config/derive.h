// Values that follow from others: parallel degrees, batch sizes, warm-up, data folders. A value that is given and
// contradicts its rule is an error that names both places.
#pragma once

#include "config/value.h"

namespace assay {

// `effective` is a native case's configuration with defaults. World size is nnodes * nproc of the case key.
// - dp = world / (mp * pp * sharding); the product of all four is the world size
// - global batch = local batch * dp * sharding; accumulate_steps = local batch / micro batch, exactly
// - Data.*.dataset.input_dir: data.path, or a folder in it
// - Data.{Eval,Test}.loader.batch_size: the local batch
// - lr.warmup_steps from warmup_rate, when the number of steps is given; otherwise the engine does it
void derive_values(Value& effective, int world_size);

}  // namespace assay
