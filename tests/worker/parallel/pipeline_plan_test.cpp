#include "parallel/pipeline_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"

namespace assay {
namespace {

double largest_part(const std::vector<double>& costs, const std::vector<int64_t>& edges) {
  double largest = 0;
  for (size_t c = 0; c + 1 < edges.size(); ++c) {
    double sum = 0;
    for (int64_t i = edges[c]; i < edges[c + 1]; ++i) sum += costs[static_cast<size_t>(i)];
    largest = std::max(largest, sum);
  }
  return largest;
}

// The best of all divisions, tried one after the other.
double best_division(const std::vector<double>& costs, int64_t num_chunks, int64_t first = 0) {
  const auto count = static_cast<int64_t>(costs.size());
  double sum = 0;
  for (int64_t i = first; i < count; ++i) sum += costs[static_cast<size_t>(i)];
  if (num_chunks == 1) return sum;
  double best = 1e30, part = 0;
  for (int64_t end = first + 1; end <= count - (num_chunks - 1); ++end) {
    part += costs[static_cast<size_t>(end) - 1];
    best = std::min(best, std::max(part, best_division(costs, num_chunks - 1, end)));
  }
  return best;
}

TEST(PipelinePlan, DividesSegmentsAsWellAsPossible) {
  uint32_t random = 1;
  const auto draw = [&] { return static_cast<double>((random = random * 1664525 + 1013904223) >> 24); };
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<double> costs(static_cast<size_t>(4 + trial % 6));
    for (double& cost : costs) cost = draw();
    for (int64_t chunks = 1; chunks <= 4; ++chunks) {
      const std::vector<int64_t> edges = divide_segments(costs, chunks);
      ASSERT_EQ(edges.size(), static_cast<size_t>(chunks) + 1);
      EXPECT_EQ(edges.front(), 0);
      EXPECT_EQ(edges.back(), static_cast<int64_t>(costs.size()));
      for (size_t c = 0; c < static_cast<size_t>(chunks); ++c) EXPECT_LT(edges[c], edges[c + 1]);
      EXPECT_DOUBLE_EQ(largest_part(costs, edges), best_division(costs, chunks));
    }
  }
  EXPECT_THROW(divide_segments({1, 1}, 3), ConfigError);
}

TEST(PipelinePlan, AlternatesOneForwardOneBackward) {
  const PipelineShape shape{.num_stages = 2, .virtual_stages = 1, .num_micro_batches = 3};
  const auto f = [](int64_t m) { return PipelineStep{true, 0, m}; };
  const auto b = [](int64_t m) { return PipelineStep{false, 0, m}; };
  EXPECT_EQ(pipeline_steps(shape, 0), (std::vector<PipelineStep>{f(0), f(1), b(0), f(2), b(1), b(2)}));
  EXPECT_EQ(pipeline_steps(shape, 1), (std::vector<PipelineStep>{f(0), b(0), f(1), b(1), f(2), b(2)}));
}

// Runs all stages as their processes would: a step waits for what it needs from another stage, messages wait for
// nobody. Returns the most forward passes that a stage kept at once.
int64_t run_all(const PipelineShape& shape) {
  const int64_t stages = shape.num_stages, chunks = shape.virtual_stages * stages;
  std::vector<std::vector<PipelineStep>> steps;
  for (int64_t s = 0; s < stages; ++s) steps.push_back(pipeline_steps(shape, s));
  std::set<std::tuple<bool, int64_t, int64_t>> done;  // forward, chunk of the network, micro-batch
  std::vector<size_t> next(static_cast<size_t>(stages), 0);
  std::vector<int64_t> kept(static_cast<size_t>(stages), 0);
  int64_t most = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int64_t s = 0; s < stages; ++s) {
      const auto at = static_cast<size_t>(s);
      while (next[at] < steps[at].size()) {
        const PipelineStep& step = steps[at][next[at]];
        const int64_t chunk = step.chunk * stages + s;
        const bool has_input = step.forward
                                   ? chunk == 0 || done.contains({true, chunk - 1, step.micro_batch})
                                   : done.contains({true, chunk, step.micro_batch}) &&
                                         (chunk + 1 == chunks || done.contains({false, chunk + 1, step.micro_batch}));
        if (!has_input) break;
        EXPECT_TRUE(done.insert({step.forward, chunk, step.micro_batch}).second);
        kept[at] += step.forward ? 1 : -1;
        most = std::max(most, kept[at]);
        ++next[at];
        moved = true;
      }
    }
  }
  EXPECT_EQ(done.size(), static_cast<size_t>(2 * chunks * shape.num_micro_batches)) << "the stages wait for each other";
  return most;
}

TEST(PipelinePlan, FinishesEveryStage) {
  for (int64_t stages = 1; stages <= 5; ++stages) {
    for (int64_t micro = 1; micro <= 9; ++micro) {
      const int64_t most = run_all({.num_stages = stages, .virtual_stages = 1, .num_micro_batches = micro});
      EXPECT_LE(most, std::min(stages, micro)) << "what makes 1F1B better than all forward passes first";
    }
    for (int64_t chunks = 2; chunks <= 3 && stages > 1; ++chunks) {
      for (int64_t rounds = 1; rounds <= 3; ++rounds) {
        run_all({.num_stages = stages, .virtual_stages = chunks, .num_micro_batches = rounds * stages});
      }
    }
  }
  EXPECT_THROW(pipeline_steps({.num_stages = 2, .virtual_stages = 2, .num_micro_batches = 3}, 0), ConfigError);
}

}  // namespace
}  // namespace assay
