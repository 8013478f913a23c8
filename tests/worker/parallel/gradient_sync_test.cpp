#include "parallel/gradient_sync.h"

#include <gmock/gmock.h>
#include <torch/utils.h>

#include "base/error.h"
#include "engine/optimizer/fused_optimizer.h"
#include "engine/optimizer/weight_average.h"
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

GradientSync::Groups groups_of(comm::Communicator& all, comm::Communicator& one, bool find_unused) {
  return {.replicas = all, .tensor = one, .summed_over_tensor = {}, .find_unused = find_unused};
}

TEST(GradientSync, SumsAsOneProcessDoes) {
  const std::vector<torch::Tensor> expected = gradients_of_all();
  on_ranks(2, [&](comm::World& world) {
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

// The sum of a bucket is under way before the backward pass has come to the layers in front of it.
TEST(GradientSync, StartsSumsDuringTheBackwardPass) {
  on_ranks(2, [&](comm::World& world) {
    const auto all = world.group({0, 1}, "dp"), one = world.group({world.rank()}, "mp");
    const Net net;
    ReplicatedGradients sync({.groups = {{{"second", net.second}}, {{"first", net.first}}}, .late = {}, .sparse = {}},
                             groups_of(*all, *one, false), true);
    sync.begin_step();
    sync.arm();
    const int64_t before = all->bytes_moved();
    int64_t inside = -1;
    const torch::Tensor early = inputs_of_rank(world.rank()).matmul(net.first.t());
    early.register_hook([&](const torch::Tensor&) { inside = all->bytes_moved() - before; });
    early.tanh().matmul(net.second).sum().backward();
    sync.finish();
    EXPECT_GE(inside, static_cast<int64_t>(net.second.nbytes()));
    EXPECT_GE(all->bytes_moved() - before, inside + static_cast<int64_t>(net.first.nbytes()));
  });
}

// Gradients of micro-batches are added up where they are: what goes between processes does not depend on their number.
TEST(GradientSync, SendsNothingBeforeTheLastMicroBatch) {
  on_ranks(2, [&](comm::World& world) {
    const auto all = world.group({0, 1}, "dp"), one = world.group({world.rank()}, "mp");
    std::vector<int64_t> moved;
    for (const int num_parts : {1, 4}) {
      const Net net;
      ReplicatedGradients sync({.groups = {net.parameters()}, .late = {}, .sparse = {}}, groups_of(*all, *one, false),
                               true);
      const int64_t before = all->bytes_moved();
      sync.begin_step();
      for (int part = 0; part < num_parts; ++part) {
        if (part + 1 == num_parts) sync.arm();
        EXPECT_EQ(all->bytes_moved(), before);
        net.loss(inputs_of_rank(world.rank()), true).backward();
      }
      sync.finish();
      moved.push_back(all->bytes_moved() - before);
    }
    EXPECT_GT(moved[0], 0);
    EXPECT_EQ(moved[0], moved[1]);
  });
}

// A parameter that no process used keeps no gradient; without leave to do so it is an error that names it.
TEST(GradientSync, ReportsUnusedParameters) {
  on_ranks(2, [&](comm::World& world) {
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

TEST(GradientSync, GathersSparseRowsOfAllProcesses) {
  on_ranks(2, [&](comm::World& world) {
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
TEST(ShardedParameters, UpdateTheWholeByPieces) {
  const std::vector<torch::Tensor> expected = gradients_of_all();
  for (const int stage : {1, 2, 3}) {
    on_ranks(2, [&](comm::World& world) {
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

// Level O2 in stage 3: a step computes with weights of the lower precision; the parts and their gradients stay float32.
TEST(ShardedParameters, KeepPartsInFloat32InAStepOfALowerPrecision) {
  const torch::Tensor x = torch::arange(12, torch::kFloat).reshape({4, 3}).mul(0.37);
  const torch::Tensor first_weight = torch::arange(6, torch::kFloat).reshape({2, 3}).mul(0.123);
  const torch::Tensor first_bias = torch::arange(2, torch::kFloat).add(0.1);
  const auto loss_of = [&](int rank, const torch::Tensor& weight, const torch::Tensor& bias) {
    const torch::Tensor own = x.narrow(0, 2 * rank, 2).to(weight.scalar_type());
    return (own.matmul(weight.t()).to(torch::kFloat) + bias).square().sum();
  };
  TensorsByName expected;
  for (const int rank : {0, 1}) {
    const torch::Tensor weight = first_weight.to(torch::kBFloat16).set_requires_grad(true);
    const torch::Tensor bias = first_bias.clone().set_requires_grad(true);
    loss_of(rank, weight, bias).backward();
    for (const auto& [name, parameter] : NamedTensors{{"weight", weight}, {"bias", bias}}) {
      const torch::Tensor gradient = parameter.grad().to(torch::kFloat);
      expected[name] = rank == 0 ? gradient : expected[name] + gradient;
    }
  }
  on_ranks(2, [&](comm::World& world) {
    const auto all = world.group({0, 1}, "sharding"), one = world.group({world.rank()}, "dp");
    const torch::Tensor weight = first_weight.clone().set_requires_grad(true);
    const torch::Tensor bias = first_bias.clone().set_requires_grad(true);
    GradientSync::Groups groups = groups_of(*all, *one, false);
    groups.reduces_every_part = true;
    ShardedParameters sync({.groups = {{{"weight", weight}}, {{"bias", bias}}}, .late = {}, .sparse = {}}, groups,
                           {.group = *all, .data = *one, .stage = 3, .low_type = torch::kBFloat16});
    for (int step = 0; step < 2; ++step) {
      sync.begin_step();
      sync.use_low_type(true);
      sync.arm();
      for (const size_t bucket : {0, 1}) sync.acquire(bucket);
      EXPECT_TRUE(weight.detach().equal(first_weight.to(torch::kBFloat16)));
      EXPECT_TRUE(bias.detach().equal(first_bias));
      loss_of(world.rank(), weight, bias).backward();
      sync.finish();
      sync.use_low_type(false);
      for (const TrainedParameter& piece : sync.trained().parameters) {
        EXPECT_EQ(piece.tensor.scalar_type(), torch::kFloat);
        EXPECT_TRUE(piece.tensor.grad().equal(*sync.piece_of(piece.name, expected.at(piece.name)))) << piece.name;
      }
    }
    // Outside of a step the weights are those of the optimizer, every bit of them.
    sync.fetch_weights();
    EXPECT_TRUE(weight.detach().equal(first_weight));
    sync.store_weights();
  });
}

// With two parts `first` is on both processes.
NamedTensors cut_in_the_middle(const Net& net) {
  return {{"spare", net.spare}, {"first", net.first}, {"second", net.second}};
}

// The averages of pieces are, put together, the averages of the weights; the network has them while they are lent.
TEST(ShardedParameters, LendTheAverageOfTheirPieces) {
  for (const int stage : {1, 2, 3}) {
    on_ranks(2, [&](comm::World& world) {
      const auto all = world.group({0, 1}, "sharding"), one = world.group({world.rank()}, "dp");
      Net net;
      ShardedParameters sync({.groups = {cut_in_the_middle(net)}, .late = {}, .sparse = {}},
                             groups_of(*all, *one, true), {.group = *all, .data = *one, .stage = stage});
      ParameterSet set = sync.trained();
      set.change_values = [&](const std::function<void()>& change) { sync.change_parts(change); };
      WeightAverage average(set, 0.5);
      const auto expect_added = [&](double value) {
        sync.fetch_weights();
        const NamedTensors now = net.parameters(), start = Net().parameters();
        for (size_t i = 0; i < now.size(); ++i) {
          EXPECT_TRUE(now[i].second.detach().allclose(start[i].second.detach() + value, 1e-14, 1e-14))
              << now[i].first << " in stage " << stage;
        }
        sync.store_weights();
      };
      for (int update = 1; update <= 2; ++update) {
        sync.begin_step();  // waits for weights on their way: until then parts must not change
        for (const TrainedParameter& piece : sync.trained().parameters) torch::Tensor(piece.tensor).add_(1);
        average.update(update);
        sync.after_update();
      }
      {
        const auto lent = average.use();
        expect_added(1.5);
      }
      expect_added(2);
      TensorsByName pieces;
      for (const auto& [name, piece] : average.state()) pieces[name.substr(4)] = piece;  // "ema."
      EXPECT_TRUE(sync.join(pieces).at("first").allclose(Net().first.detach() + 1.5, 1e-14, 1e-14));
      average.adopt();
      expect_added(1.5);
    });
  }
}

// LAMB's norms are those of whole parameters, though a process has pieces of them.
TEST(ShardedParameters, UseTrustRatiosOfWholeParameters) {
  const Optimizer::Options options{.name = "LAMB", .weight_decay = 0.1};
  const std::vector<torch::Tensor> gradients = gradients_of_all();
  const Net whole;
  FusedOptimizer reference(whole.parameters(), options);
  for (int step = 0; step < 3; ++step) {
    size_t i = 0;
    for (const auto& [name, parameter] : whole.parameters()) torch::Tensor(parameter).mutable_grad() = gradients[i++];
    reference.step({.learning_rate = 0.1});
  }
  on_ranks(2, [&](comm::World& world) {
    const auto all = world.group({0, 1}, "sharding"), one = world.group({world.rank()}, "dp");
    Net net;
    ShardedParameters sync({.groups = {cut_in_the_middle(net)}, .late = {}, .sparse = {}}, groups_of(*all, *one, true),
                           {.group = *all, .data = *one, .stage = 1});
    ParameterSet set = sync.trained();
    set.all_names = {"first", "second", "spare"};
    set.sum_of_all = [&](std::vector<double>& own) {
      all->all_reduce(own.data(), static_cast<int64_t>(own.size()), comm::DType::F64);
    };
    FusedOptimizer optimizer(set, options);
    for (int step = 0; step < 3; ++step) {
      for (const TrainedParameter& piece : set.parameters) {
        const size_t at = piece.name == "first" ? 0 : (piece.name == "second" ? 1 : 2);
        torch::Tensor(piece.tensor).mutable_grad() = *sync.piece_of(piece.name, gradients[at]);
      }
      optimizer.step({.learning_rate = 0.1});
    }
    sync.after_update();
    sync.fetch_weights();
    const NamedTensors ours = net.parameters(), theirs = whole.parameters();
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_TRUE(ours[i].second.detach().allclose(theirs[i].second.detach(), 1e-13, 1e-13)) << ours[i].first;
    }
  });
}

}  // namespace
}  // namespace assay
