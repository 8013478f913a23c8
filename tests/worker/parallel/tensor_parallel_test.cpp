// Layers in parts, on several ranks, against the same layers in one process.
#include "nn/tensor_parallel.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/utils.h>

#include "base/error.h"
#include "nn/batch_statistics.h"
#include "nn/linear.h"
#include "nn/norm_act.h"
#include "threads_as_ranks.h"

namespace assay {
namespace {

torch::Tensor leaf(const torch::Tensor& values) { return values.detach().clone().set_requires_grad(true); }

void expect_close(const torch::Tensor& a, const torch::Tensor& b, const char* what) {
  EXPECT_TRUE(a.allclose(b, 1e-12, 1e-13)) << what << ": " << (a - b).abs().max();
}

// table -> tanh -> cross entropy over a vocabulary that does not divide, with an ignored label.
struct Whole {
  torch::Tensor table, wide, narrow, x, labels, ids;
  Whole() {
    torch::manual_seed(3);
    table = torch::randn({7, 4}, torch::kDouble);
    wide = torch::randn({6, 4}, torch::kDouble);
    narrow = torch::randn({4, 6}, torch::kDouble);
    ids = torch::tensor({{0, 6, 3, 3}, {5, 1, 0, 2}});
    labels = torch::tensor({1, 6, -100, 0, 4, 3, 2, 6});
  }
};

TEST(TensorParallel, ComputesWholeLayersByParts) {
  const Whole w;
  const torch::Tensor table = leaf(w.table), wide = leaf(w.wide), narrow = leaf(w.narrow);
  const torch::Tensor hidden = torch::embedding(table, w.ids);
  const torch::Tensor out = hidden + torch::linear(torch::linear(hidden, wide).tanh(), narrow);
  const torch::Tensor loss = torch::nn::functional::cross_entropy(torch::linear(out.flatten(0, 1), table), w.labels);
  loss.backward();
  for (const bool sequence : {false, true}) {
    on_ranks(2, [&](comm::World& world) {
      const auto group = world.group({0, 1}, "mp");
      const TensorParallel parallel(*group, sequence);
      const PartRange rows = part_range(7, world.rank(), 2), inner = part_range(6, world.rank(), 2);
      const torch::Tensor own_table = leaf(w.table.narrow(0, rows.begin, rows.count()));
      const torch::Tensor own_wide = leaf(w.wide.narrow(0, inner.begin, inner.count()));
      const torch::Tensor own_narrow = leaf(w.narrow.narrow(1, inner.begin, inner.count()).contiguous());
      const torch::Tensor part = parallel.split_sequence(parallel.embedding(own_table, 7, w.ids, false));
      EXPECT_EQ(part.size(1), sequence ? 2 : 4);
      const torch::Tensor made =
          part + parallel.leave(torch::linear(torch::linear(parallel.enter(part), own_wide).tanh(), own_narrow));
      const torch::Tensor own_loss =
          parallel.linear_cross_entropy(parallel.enter(made).flatten(0, 1), {own_table, {}}, 7, w.labels);
      expect_close(own_loss, loss, "loss");
      const torch::Tensor logits = parallel.join_outputs(torch::linear(parallel.enter(made), own_table), 7);
      expect_close(logits, torch::linear(out, table), "logits");
      expect_close(parallel.join_sequence(made), out, "sequence");
      own_loss.backward();
      expect_close(own_table.grad(), table.grad().narrow(0, rows.begin, rows.count()), "table");
      expect_close(own_wide.grad(), wide.grad().narrow(0, inner.begin, inner.count()), "wide");
      expect_close(own_narrow.grad(), narrow.grad().narrow(1, inner.begin, inner.count()), "narrow");
    });
  }
}

TEST(TensorParallel, RejectsASequenceThatIsNotDivisible) {
  on_ranks(2, [&](comm::World& world) {
    const auto group = world.group({0, 1}, "mp");
    EXPECT_THROW(TensorParallel(*group, true).split_sequence(torch::zeros({1, 3, 2})), ConfigError);
  });
}

// Batch normalisation over the batches of two processes is that over both in one, forward, backward and statistics.
TEST(BatchStatistics, AreThoseOfTheWholeBatch) {
  torch::manual_seed(5);
  const torch::Tensor x = torch::randn({5, 8, 3, 3}, torch::kDouble), g = torch::randn({5, 8, 3, 3}, torch::kDouble);
  const auto make = [] {
    torch::nn::BatchNorm2d norm(8);
    norm->to(torch::kDouble);
    norm->train();
    return norm;
  };
  torch::nn::BatchNorm2d whole = make();
  const torch::Tensor whole_x = leaf(x.contiguous(torch::MemoryFormat::ChannelsLast));
  const torch::Tensor whole_y = norm_act(*whole, whole_x, {.residual = {}, .relu = true});
  whole_y.backward(g);
  on_ranks(2, [&](comm::World& world) {
    const auto group = world.group({0, 1}, "replicas");
    const SharedStatistics scope(*group);
    const int64_t begin = world.rank() == 0 ? 0 : 3, count = world.rank() == 0 ? 3 : 2;  // parts of different sizes
    torch::nn::BatchNorm2d norm = make();
    const torch::Tensor own = leaf(x.narrow(0, begin, count));  // not channels last: it is made to fit
    const torch::Tensor y = norm_act(*norm, own, {.residual = {}, .relu = true});
    expect_close(y, whole_y.narrow(0, begin, count), "y");
    y.backward(g.narrow(0, begin, count));
    expect_close(own.grad(), whole_x.grad().narrow(0, begin, count), "x");
    expect_close(norm->running_mean, whole->running_mean, "mean");
    expect_close(norm->running_var, whole->running_var, "variance");
    torch::Tensor weight = norm->weight.grad().clone();
    group->all_reduce(weight.data_ptr(), weight.numel(), comm::DType::F64);
    expect_close(weight, whole->weight.grad(), "weight");
  });
}

// What mixed precision gives to a normalisation shares its statistics too; they are those of the rounded values.
TEST(BatchStatistics, AreSharedInLowerPrecisions) {
  torch::manual_seed(5);
  for (const auto type : {torch::kBFloat16, torch::kHalf}) {
    const torch::Tensor x = (torch::randn({4, 8, 3, 3}) + torch::arange(4).view({4, 1, 1, 1})).to(type);
    const torch::Tensor residual = torch::randn({4, 8, 3, 3}).to(type);
    torch::nn::BatchNorm2d whole(8);
    const torch::Tensor whole_y =
        norm_act(*whole, x.to(torch::kFloat).contiguous(torch::MemoryFormat::ChannelsLast),
                 {.residual = residual.to(torch::kFloat).contiguous(torch::MemoryFormat::ChannelsLast), .relu = true});
    on_ranks(2, [&](comm::World& world) {
      const auto group = world.group({0, 1}, "replicas");
      const SharedStatistics scope(*group);
      torch::nn::BatchNorm2d norm(8);
      const torch::Tensor own = leaf(x.narrow(0, 2 * world.rank(), 2));
      const torch::Tensor y = norm_act(*norm, own, {.residual = residual.narrow(0, 2 * world.rank(), 2), .relu = true});
      EXPECT_EQ(y.scalar_type(), type);
      EXPECT_TRUE(y.to(torch::kFloat).allclose(whole_y.narrow(0, 2 * world.rank(), 2), 1e-2, 1e-2));
      EXPECT_TRUE(norm->running_mean.allclose(whole->running_mean, 1e-5, 1e-6));
      EXPECT_TRUE(norm->running_var.allclose(whole->running_var, 1e-5, 1e-6));
      y.to(torch::kFloat).sum().backward();
      EXPECT_EQ(own.grad().scalar_type(), type);
    });
  }
}

}  // namespace
}  // namespace assay
