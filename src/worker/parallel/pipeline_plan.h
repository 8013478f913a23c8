// Who computes what when in a pipeline: segments of the network divided into chunks, and the order in which a stage
// computes its chunks for the micro-batches of a step. Knows numbers, not tensors.
#pragma once

#include <cstdint>
#include <vector>

namespace assay {

// The first segment of each chunk, and behind the last the number of segments: contiguous chunks, each with a segment
// at least, whose largest cost is as small as it can be. Throws ConfigError when there are fewer segments than chunks.
std::vector<int64_t> divide_segments(const std::vector<double>& costs, int64_t num_chunks);

struct PipelineStep {
  bool forward = true;
  int64_t chunk = 0;  // of the stage's own: 0 .. virtual_stages - 1
  int64_t micro_batch = 0;
  bool operator==(const PipelineStep&) const = default;
};

struct PipelineShape {
  int64_t num_stages = 1;
  int64_t virtual_stages = 1;
  int64_t num_micro_batches = 1;
};
// One forward, one backward (Narayanan et al. 2019), and interleaved (2021) with several chunks per stage. Chunk c of
// stage s is chunk c * num_stages + s of the network. Throws ConfigError when interleaved micro-batches are not a
// multiple of the stages.
std::vector<PipelineStep> pipeline_steps(const PipelineShape& shape, int64_t stage);

}  // namespace assay
