#include "parallel/pipeline_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace assay {

std::vector<int64_t> divide_segments(const std::vector<double>& costs, int64_t num_chunks) {
  const auto count = static_cast<int64_t>(costs.size());
  if (count < num_chunks) {
    throw ConfigError(
        fmt::format("Distributed.pp_degree * virtual_pp_degree = {}: the model has {} segments to divide "
                    "(Network::num_segments, run_segment)",
                    num_chunks, count));
  }
  std::vector<double> sums(costs.size() + 1, 0);
  for (size_t i = 0; i < costs.size(); ++i) sums[i + 1] = sums[i] + costs[i];
  // best[k][i]: the smallest largest cost of the first i segments in k chunks; from[k][i]: where the last one begins.
  const double none = std::numeric_limits<double>::infinity();
  const auto n = static_cast<size_t>(count), chunks = static_cast<size_t>(num_chunks);
  std::vector best(chunks + 1, std::vector<double>(n + 1, none));
  std::vector from(chunks + 1, std::vector<int64_t>(n + 1, 0));
  best[0][0] = 0;
  for (size_t k = 1; k <= chunks; ++k) {
    for (size_t i = k; i <= n; ++i) {
      for (size_t j = k - 1; j < i; ++j) {
        const double cost = std::max(best[k - 1][j], sums[i] - sums[j]);
        if (cost < best[k][i]) {
          best[k][i] = cost;
          from[k][i] = static_cast<int64_t>(j);
        }
      }
    }
  }
  std::vector<int64_t> edges(chunks + 1, count);
  for (size_t k = chunks; k > 0; --k) edges[k - 1] = from[k][static_cast<size_t>(edges[k])];
  return edges;
}

std::vector<PipelineStep> pipeline_steps(const PipelineShape& shape, int64_t stage) {
  const int64_t stages = shape.num_stages, chunks = shape.virtual_stages, micro = shape.num_micro_batches;
  if (chunks > 1 && micro % stages != 0) {
    throw ConfigError(fmt::format(
        "Distributed.virtual_pp_degree = {}: the {} micro-batches of a step must be a multiple of pp_degree "
        "{}; set Engine.accumulate_steps",
        chunks, micro, stages));
  }
  // The k-th forward (backward) of a stage: as many micro-batches as stages through a chunk, then the next chunk.
  const auto step = [&](bool forward, int64_t k) {
    if (chunks == 1) return PipelineStep{forward, 0, k};
    const int64_t round = k / (stages * chunks), within = k % (stages * chunks);
    const int64_t chunk = within / stages;
    return PipelineStep{forward, forward ? chunk : chunks - 1 - chunk, round * stages + within % stages};
  };
  const int64_t total = micro * chunks;
  const int64_t ahead = chunks == 1 ? stages - stage - 1 : (stages - stage - 1) * 2 + (chunks - 1) * stages;
  const int64_t warmup = std::min(total, ahead);
  std::vector<PipelineStep> steps;
  for (int64_t k = 0; k < warmup; ++k) steps.push_back(step(true, k));
  for (int64_t k = warmup; k < total; ++k) {
    steps.push_back(step(true, k));
    steps.push_back(step(false, k - warmup));
  }
  for (int64_t k = total - warmup; k < total; ++k) steps.push_back(step(false, k));
  return steps;
}

}  // namespace assay
