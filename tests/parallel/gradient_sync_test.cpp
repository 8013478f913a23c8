#include "parallel/gradient_sync.h"

#include <gmock/gmock.h>
#include <torch/utils.h>

#include "base/error.h"
#include "parallel/sharded_parameters.h"
#include "threads_as_ranks.h"

namespace assay {
namespace {

using testing::HasSubstr;

// Two layers, one of which a rank may leave out. Rank r trains on the r-th part of a batch of all ranks.
struct Net {
  torch::Tensor first = torch::arange(6, torch::kDouble).reshape({2, 3}).mul(0.1).set_requires_grad(true);
  torch::Tensor second = torch::ones({2}, torch::kDouble).mul(0.5).set_requires_grad(true);
  torch::Tensor spare = torch::ones({5}, torch::kDouble).set_requires_grad(true);
  NamedTensors parameters() const { return {{"first", first}, {"second", second}, {"spare", spare}}; }
  torch::Tensor loss(const torch::Tensor& x, bool uses_spare) const {
    const torch::Tensor y = x.matmul(first.t()).tanh().matmul(second).sum();
    return uses_spare ? y + spare.sum() : y;
  }
};

torch::Tensor inputs_of_rank(int rank) {
  return torch::arange(12, torch::kDouble).reshape({4, 3}).narrow(0, 2 * rank, 2);
}

// The gradients of one process that has everything.
std::vector<torch::Tensor> gradients_of_all() {
  Net net;
  (net.loss(inputs_of_rank(0), true) + net.loss(inputs_of_rank(1), false)).backward();
  return {net.first.grad(), net.second.grad(), net.spare.grad()};
}

GradientSync::Groups groups_of(Communicator& all, Communicator& one, bool find_unused) {
  return {.replicas = all, .tensor = one, .summed_over_tensor = {}, .find_unused = find_unused};
}

TEST(GradientSync, SumsAreThoseOfOneProcess) {
  const std::vector<torch::Tensor> expected = gradients_of_all();
  on_ranks(2, [&](World& world) {
    const auto all = world.group({0, 1}, "dp"), one = world.group({world.rank()}, "mp");
    Net net;
    ReplicatedGradients sync({.groups = group_by_size(net.parameters(), 20), .late = {}, .sparse = {}},
                             groups_of(*all, *one, /*find_unused=*/true), true);
    for (int step = 0; step < 3; ++step) {
      sync.begin_step();
      sync.arm();
      net.loss(inputs_of_rank(world.rank()), world.rank() == 0).backward();
      sync.finish();
      size_t i = 0;
      for (const auto& [name, parameter] : net.parameters()) {
        EXPECT_TRUE(parameter.grad().allclose(expected[i++], 1e-14, 1e-14)) << name;
        torch::Tensor(parameter).mutable_grad().reset();
      }
    }
  });
}

// A parameter that no process used keeps no gradient; without leave to do so it is an error that names it.
TEST(GradientSync, UnusedParameters) {
  on_ranks(2, [&](World& world) {
    const auto all = world.group({0, 1}, "dp"), one = world.group({world.rank()}, "mp");
    for (const bool find_unused : {true, false}) {
      Net net;
      ReplicatedGradients sync({.groups = {net.parameters()}, .late = {}, .sparse = {}},
                               groups_of(*all, *one, find_unused), true);
      sync.begin_step();
      sync.arm();
      net.loss(inputs_of_rank(world.rank()), false).backward();
      if (find_unused) {
        sync.finish();
        EXPECT_TRUE(net.first.grad().defined());
        EXPECT_FALSE(net.spare.grad().defined());
      } else {
        try {
          sync.finish();
          ADD_FAILURE() << "spare has no gradient";
        } catch (const ConfigError& error) {
          EXPECT_THAT(error.what(), HasSubstr("the first is spare"));
        }
      }
    }
  });
}

TEST(GradientSync, SparseGradientsAreTheRowsOfAllProcesses) {
  on_ranks(2, [&](World& world) {
    const auto all = world.group({0, 1}, "dp"), one = world.group({world.rank()}, "mp");
    const torch::Tensor table = torch::zeros({10, 2}, torch::kDouble).set_requires_grad(true);
    const torch::Tensor weight = torch::ones({1}, torch::kDouble).set_requires_grad(true);
    ReplicatedGradients sync({.groups = {{{"weight", weight}}}, .late = {}, .sparse = {{"table", table}}},
                             groups_of(*all, *one, false), true);
    sync.begin_step();
    sync.arm();
    // Rank 0 looks up rows 3 and 5, rank 1 rows 5, 5 and 7.
    const torch::Tensor ids = world.rank() == 0 ? torch::tensor({3, 5}) : torch::tensor({5, 5, 7});
    (torch::embedding(table, ids, -1, false, /*sparse=*/true).sum() * weight).sum().backward();
    sync.finish();
    ASSERT_TRUE(table.grad().is_sparse());
    torch::Tensor expected = torch::zeros({10, 2}, torch::kDouble);
    expected[3] += 1;
    expected[5] += 3;
    expected[7] += 1;
    EXPECT_TRUE(table.grad().to_dense().equal(expected));
  });
}

// Each stage: after finish() the pieces have the sums, after an update and a gather the parameters have the update.
TEST(ShardedParameters, PiecesUpdateTheWhole) {
  const std::vector<torch::Tensor> expected = gradients_of_all();
  for (const int stage : {1, 2, 3}) {
    on_ranks(2, [&](World& world) {
      const auto all = world.group({0, 1}, "sharding"), one = world.group({world.rank()}, "dp");
      Net net;
      const NamedTensors parameters = net.parameters();
      GradientSync::Groups groups = groups_of(*all, *one, true);
      groups.reduces_every_part = stage > 1;
      ShardedParameters sync({.groups = {parameters}, .late = {}, .sparse = {}}, groups,
                             {.group = *all, .data = *one, .stage = stage});
      const Net before;
      sync.begin_step();
      if (stage == 3) sync.acquire(0);
      for (int part = 0; part < 2; ++part) {  // two micro-batches of one sample
        if (part == 1 || stage > 1) sync.arm();
        if (stage == 3 && part == 1) sync.acquire(0);
        const torch::Tensor x = inputs_of_rank(world.rank()).narrow(0, part, 1);
        net.loss(x, world.rank() == 0 && part == 0).backward();
      }
      sync.finish();
      for (const TrainedParameter& piece : sync.trained().parameters) {
        torch::Tensor(piece.tensor).sub_(piece.tensor.grad());  // plain descent, rate 1
      }
      sync.after_update();
      sync.fetch_weights();
      const std::vector<torch::Tensor> start = {before.first, before.second, before.spare};
      for (size_t i = 0; i < parameters.size(); ++i) {
        EXPECT_TRUE(parameters[i].second.detach().allclose(start[i].detach() - expected[i], 1e-14, 1e-14))
            << parameters[i].first << " in stage " << stage;
      }
      sync.store_weights();
      // The pieces joined are the whole, and the whole cut again are the pieces.
      const TensorsByName whole = sync.join(sync.weight_pieces());
      for (const auto& [name, piece] : sync.weight_pieces()) {
        EXPECT_TRUE(sync.piece_of(name, whole.at(name))->equal(piece));
      }
    });
  }
}

}  // namespace
}  // namespace assay
