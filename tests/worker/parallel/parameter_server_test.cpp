// The strategy of trainers, one at a time: several, and whole runs, are in tests/cli/parameter_server_test.py.
#include "parallel/parameter_server.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cstring>
#include <limits>
#include <map>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "engine/checkpoint/tensor_file.h"
#include "engine/optimizer/fused_optimizer.h"
#include "engine/options.h"
#include "param_server/server.h"

using namespace assay;

namespace {

// A table of ten rows of two, and a dense weight: output = sum over rows read of table[row] . weight.
class TableNet final : public Network {
 public:
  explicit TableNet(bool says_rows) : says_rows_(says_rows) {
    table_ = register_parameter("table", torch::arange(20, torch::kDouble).view({10, 2}) / 10);
    weight_ = register_parameter("weight", torch::tensor({0.5, -0.25}, torch::kDouble));
  }
  torch::Tensor forward(const TensorList& inputs) override {
    return torch::embedding(table_, inputs.at(0), -1, false, /*sparse=*/is_training()).matmul(weight_);
  }
  std::vector<std::string> sparse_parameters() const override { return {"table"}; }
  TensorList sparse_rows(const TensorList& inputs) const override {
    return says_rows_ ? TensorList{inputs.at(0)} : TensorList{};
  }

 private:
  bool says_rows_;
  torch::Tensor table_, weight_;
};

class TableModule final : public Module {
 public:
  explicit TableModule(bool says_rows = true) : says_rows_(says_rows) { init(); }
  std::shared_ptr<Network> get_model() override { return std::make_shared<TableNet>(says_rows_); }
  LossFunction get_loss_fn() override {
    return [](const torch::Tensor& out, const torch::Tensor& label) { return (out - label).square().mean(); };
  }
  std::vector<InputSpec> input_spec() const override { return {}; }

 private:
  bool says_rows_;
};

class DenseNet final : public Network {
 public:
  DenseNet() { register_parameter("weight", torch::ones({2})); }
};

class DenseModule final : public Module {
 public:
  DenseModule() { init(); }
  std::shared_ptr<Network> get_model() override { return std::make_shared<DenseNet>(); }
  LossFunction get_loss_fn() override { return {}; }
  std::vector<InputSpec> input_spec() const override { return {}; }
};

// One server in a thread, and a trainer of it.
struct OneServer {
  explicit OneServer(ps::Mode mode, fs::path checkpoints = {}) : mode(mode), checkpoints(std::move(checkpoints)) {
    start(0);
    strategy = std::make_unique<ParameterServerStrategy>(
        ServerJobOptions{.mode = mode, .geo_steps = 2, .time_limit_s = 10},
        ps::ClientOptions{.servers = {{"127.0.0.1", server->port()}}, .mode = mode, .job = "test", .time_limit_s = 10},
        /*seed=*/1);
  }
  ~OneServer() { stop(); }
  void start(int port) {
    ps::ServerOptions options{.endpoint = {"127.0.0.1", port}, .shard = {}};
    options.shard.mode = mode;
    options.shard.job = "test";
    options.shard.checkpoint_folder = checkpoints;
    server = std::make_unique<ps::Server>(std::move(options));
    thread = std::thread([this] { server->run(); });
  }
  void stop() {
    server->stop("the test ends");
    thread.join();
  }
  void restart() {
    const int port = server->port();
    stop();
    server.reset();  // leaves the port
    start(port);
  }
  // The rows of a table that the server has, by id.
  std::map<int64_t, std::vector<double>> rows(uint32_t table, size_t width) const {
    const ps::ChangedRows all = server->shard().changed({.table = table, .since = 0, .max_rows = 100}, 1 << 20);
    std::map<int64_t, std::vector<double>> rows;
    for (size_t i = 0; i < all.ids.size(); ++i) {
      std::vector<double>& row = rows[all.ids[i]];
      row.resize(width);
      std::memcpy(row.data(), all.values.data() + i * width * sizeof(double), width * sizeof(double));
    }
    return rows;
  }
  ps::Mode mode;
  fs::path checkpoints;
  std::unique_ptr<ps::Server> server;
  std::thread thread;
  std::unique_ptr<ParameterServerStrategy> strategy;
};

EngineOptions adam_options() {
  EngineOptions options;
  options.optimizer = {.name = "Adam", .weight_decay = 0.01};
  return options;
}

Batch batch_of(const std::vector<int64_t>& rows) {
  const auto count = static_cast<int64_t>(rows.size());
  return {.tensors = {torch::tensor(rows, torch::kLong), torch::ones({count}, torch::kDouble)}, .num_samples = count};
}

const std::vector<std::vector<int64_t>> kBatches = {{1, 3, 3}, {0, 9}, {1, 9, 4}};

// As the engine does: weights, gradients, update. The losses are scaled so much; the gradients of one step overflow.
struct Scaling {
  double scale = 1;
  std::optional<size_t> overflow_at = {};
  bool may_skip = false;
};

void backward(const torch::Tensor& loss, size_t step, const Scaling& scaling) {
  const bool overflows = step == scaling.overflow_at;
  (loss * (overflows ? std::numeric_limits<double>::infinity() : scaling.scale)).backward();
}

Optimizer::Update update_with(const Scaling& scaling) {
  return {.learning_rate = 0.1, .gradient_scale = scaling.scale, .skip_non_finite = scaling.may_skip};
}

void train_by(Strategy& strategy, Module& module, Optimizer& optimizer, size_t begin = 0, size_t end = kBatches.size(),
              const Scaling& scaling = {}) {
  module.model().train();
  for (size_t i = begin; i < end; ++i) {
    strategy.step().begin_step(static_cast<int64_t>(i) + 1);
    const std::vector<MicroBatch> parts = {{batch_of(kBatches[i]), 1}};
    strategy.step().bring_weights(parts);
    const torch::Tensor loss = module.training_step(parts[0].batch);
    backward(loss, i, scaling);
    strategy.step().finish_gradients();
    EXPECT_DOUBLE_EQ(strategy.step().agree({.loss = loss.item<double>()}).loss, loss.item<double>());
    EXPECT_EQ(optimizer.step(update_with(scaling)).skipped, i == scaling.overflow_at);
    strategy.step().after_update();
    optimizer.clear_grad();
  }
}

NamedTensors trained_alone(const Scaling& scaling = {}) {
  TableModule module;
  FusedOptimizer optimizer(module.trained_parameters(), adam_options().optimizer);
  module.model().train();
  for (size_t i = 0; i < kBatches.size(); ++i) {
    backward(module.training_step(batch_of(kBatches[i])), i, scaling);
    optimizer.step(update_with(scaling));
    optimizer.clear_grad();
  }
  return state_of(module.model());
}

void expect_equal(const NamedTensors& found, const NamedTensors& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(found[i].first, wanted[i].first);
    EXPECT_TRUE(torch::allclose(found[i].second, wanted[i].second, 1e-12, 1e-14)) << wanted[i].first;
  }
}

std::string refusal_of(ps::Mode mode, Module& module, const std::function<void(EngineOptions&)>& change) {
  OneServer job(mode);
  EngineOptions options = adam_options();
  change(options);
  try {
    job.strategy->prepare(module, options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST(ParameterServer, UpdatesAsTheFusedOptimizerDoes) {
  for (const ps::Mode mode : {ps::Mode::Sync, ps::Mode::Async}) {  // with one trainer they are the same
    OneServer job(mode);
    TableModule module;
    job.strategy->prepare(module, adam_options());
    const auto optimizer = job.strategy->create_optimizer(adam_options().optimizer);
    ASSERT_TRUE(optimizer);
    train_by(*job.strategy, module, *optimizer);
    EXPECT_EQ(optimizer->num_updates(), 3);
    expect_equal(job.strategy->state().gather_weights(module), trained_alone());
    // Only rows that a batch read are on the server; weight is one piece.
    const Json tables = job.server->shard().stats().at("tables");
    EXPECT_EQ(tables.at(0).at("rows"), 5);
    EXPECT_EQ(tables.at(1).at("rows"), 1);
    job.strategy->leave();
  }
}

TEST(ParameterServer, DoesNotSendAGradientThatIsNotFinite) {
  for (const ps::Mode mode : {ps::Mode::Sync, ps::Mode::Async}) {
    OneServer job(mode);
    TableModule module;
    job.strategy->prepare(module, adam_options());
    const auto optimizer = job.strategy->create_optimizer(adam_options().optimizer);
    EXPECT_THROW(train_by(*job.strategy, module, *optimizer, 0, 1, {.overflow_at = 0}), NonFiniteError);
    EXPECT_EQ(optimizer->num_updates(), 0);
    expect_equal(job.strategy->state().gather_weights(module), state_of(TableModule().model()));
    job.strategy->leave();
  }
}

// Servers get true gradients, and do not count what was skipped: Adam's corrections depend on the number of updates.
TEST(ParameterServer, HandlesScaledLossesAndSkippedSteps) {
  for (const size_t overflow_at : {0, 1}) {
    const Scaling scaling{.scale = 1024, .overflow_at = overflow_at, .may_skip = true};
    for (const ps::Mode mode : {ps::Mode::Sync, ps::Mode::Async}) {
      OneServer job(mode);
      TableModule module;
      job.strategy->prepare(module, adam_options());
      const auto optimizer = job.strategy->create_optimizer(adam_options().optimizer);
      train_by(*job.strategy, module, *optimizer, 0, kBatches.size(), scaling);
      EXPECT_EQ(optimizer->num_updates(), 2);
      EXPECT_EQ(job.server->shard().stats().at("num_updates"), 2);
      expect_equal(job.strategy->state().gather_weights(module), trained_alone(scaling));
      job.strategy->leave();
    }
  }
}

TEST(ParameterServer, TrainsByGeoAsOneProcessWithOneTrainer) {
  OneServer job(ps::Mode::Geo);
  TableModule module;
  job.strategy->prepare(module, adam_options());
  EXPECT_FALSE(job.strategy->create_optimizer(adam_options().optimizer));
  FusedOptimizer optimizer(module.trained_parameters(), adam_options().optimizer);
  train_by(*job.strategy, module, optimizer);
  job.strategy->finish();
  expect_equal(job.strategy->state().gather_weights(module), trained_alone());
  EXPECT_EQ(job.server->shard().stats().at("tables").at(0).at("rows"), 5);
  job.strategy->leave();
}

// A server that comes back without what it had, or with what it had saved, takes every difference of the trainers: rows
// that it has no more get the values that they had for the trainer.
TEST(ParameterServer, ContinuesGeoWithARestartedServer) {
  const NamedTensors wanted = trained_alone();
  const torch::Tensor table = wanted[0].second, weight = wanted[1].second;
  for (const bool saves : {false, true}) {
    const TempFolder folder;
    OneServer job(ps::Mode::Geo, saves ? folder.path() : fs::path());
    TableModule module;
    job.strategy->prepare(module, adam_options());
    FusedOptimizer optimizer(module.trained_parameters(), adam_options().optimizer);
    train_by(*job.strategy, module, optimizer, 0, 1);
    const NamedTensors first = state_of(module.model());
    const torch::Tensor weight_then = first[1].second.detach().clone();
    if (saves) {
      job.strategy->state().gather_weights(module);  // an exchange: rows 1 and 3
      job.strategy->state().gather_state({});
    }
    train_by(*job.strategy, module, optimizer, 1, 2);  // rows 0 and 9, and another exchange
    EXPECT_EQ(job.rows(0, 2).size(), 4u);
    const torch::Tensor weight_before = state_of(module.model())[1].second.detach().clone();
    job.restart();
    train_by(*job.strategy, module, optimizer, 2, 3);  // rows 1, 4 and 9
    job.strategy->finish();
    EXPECT_EQ(job.server->shard().stats().at("num_unknown_rows"), 0);
    const auto rows = job.rows(0, 2);
    EXPECT_EQ(rows.size(), saves ? 4u : 3u);  // the saved one has row 3 too
    for (const int64_t id : {1, 4, 9}) {
      ASSERT_TRUE(rows.contains(id)) << id;
      EXPECT_TRUE(torch::allclose(torch::tensor(rows.at(id), torch::kDouble), table[id], 1e-12, 1e-14)) << id;
    }
    // The saved server has lost the second step of the dense weight, and nothing else.
    const torch::Tensor dense = saves ? weight_then + (weight - weight_before) : weight;
    const auto pieces = job.rows(1, ps::kDensePiece);
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_TRUE(torch::allclose(torch::tensor(pieces.at(0), torch::kDouble).narrow(0, 0, 2), dense, 1e-12, 1e-14));
    const NamedTensors all = job.strategy->state().gather_weights(module);
    EXPECT_TRUE(torch::allclose(all[0].second, table, 1e-12, 1e-14));
    EXPECT_TRUE(torch::allclose(all[1].second, dense, 1e-12, 1e-14));
    job.strategy->leave();
  }
}

TEST(ParameterServer, RejectsWhatItCannotDo) {
  TableModule module;
  DenseModule dense;
  const auto keep = [](EngineOptions&) {};
  EXPECT_EQ(refusal_of(ps::Mode::Sync, module, keep), "");
  EXPECT_NE(refusal_of(ps::Mode::Sync, dense, keep).find("sparse parameters"), std::string::npos);
  const auto refused = [&](const std::function<void(EngineOptions&)>& change, const char* word) {
    const std::string reason = refusal_of(ps::Mode::Sync, module, change);
    EXPECT_NE(reason.find(word), std::string::npos) << reason;
  };
  refused([](EngineOptions& o) { o.optimizer.name = "LAMB"; }, "Adagrad");
  refused([](EngineOptions& o) { o.optimizer.clip_norm = 1; }, "grad_clip");
  refused([](EngineOptions& o) { o.optimizer.ema_decay = 0.9; }, "ema");
  refused([](EngineOptions& o) { o.optimizer.no_decay = {"nothing"}; }, "no_decay");
}

TEST(ParameterServer, RequiresANetworkToSayWhichRowsItReads) {
  OneServer job(ps::Mode::Sync);
  TableModule module(/*says_rows=*/false);
  job.strategy->prepare(module, adam_options());
  const auto optimizer = job.strategy->create_optimizer(adam_options().optimizer);
  EXPECT_THROW(train_by(*job.strategy, module, *optimizer), ConfigError);
}

TEST(ParameterServer, PassesTensorsOfTheWriterToTheOthers) {
  OneServer job(ps::Mode::Sync);
  std::string text = "words";
  job.strategy->state().broadcast(text);
  EXPECT_EQ(text, "words");
  const TensorsByName tensors = {{"a", torch::arange(6).view({2, 3})}, {"empty", torch::empty({0})}};
  const TensorsByName own = job.strategy->state().scatter_weights(tensors);
  ASSERT_EQ(own.size(), 2u);
  EXPECT_TRUE(torch::equal(own.at("a"), tensors.at("a")));
  EXPECT_EQ(job.strategy->step().sum_over_replicas(2.5), 2.5);
  const StepAgreement agreed = job.strategy->step().agree({.loss = 0.5, .stop = true});
  EXPECT_EQ(agreed.loss, 0.5);
  EXPECT_TRUE(agreed.stop);
}
