#include "engine/loop/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "../toy.h"
#include "base/error.h"
#include "base/files.h"
#include "engine/checkpoint/tensor_file.h"
#include "engine/loop/record_observer.h"
#include "record/keys.h"

namespace assay {
namespace {

int count(const std::vector<std::string>& calls, const std::string& name) {
  return static_cast<int>(std::count(calls.begin(), calls.end(), name));
}

Target accuracy_target(double value) { return {.metric = "accuracy", .value = value, .goal = Goal::Maximize}; }

TEST(Engine, CallsHooksInTheirOrder) {
  auto module = std::make_unique<ToyModule>();
  module->init();
  EngineOptions options = toy_options();
  options.max_steps = 2;
  options.logging_freq = 2;
  Engine engine(*module, options, {});
  const auto train = toy_loader(16);
  const auto eval = toy_loader(8, false);
  engine.fit(*train, eval.get());
  EXPECT_EQ(module->calls,
            (std::vector<std::string>{"get_model", "get_loss_fn", "configure_optimizers", "pretreating_batch",
                                      "training_step", "backward", "pretreating_batch", "training_step", "backward",
                                      "training_step_end", "training_epoch_end", "pretreating_batch", "validation_step",
                                      "validation_step_end", "validation_epoch_end"}));
}

TEST(Engine, MakesExactlyMaxSteps) {
  for (const int64_t max_steps : {1, 4, 5, 6, 9, 10}) {
    const auto module = toy_module();
    EngineOptions options = toy_options();
    options.max_steps = max_steps;
    Engine engine(*module, options, {});
    const auto train = toy_loader(40);  // 5 batches an epoch, 2 epochs
    engine.fit(*train, nullptr);
    EXPECT_EQ(engine.state().global_step, max_steps);
    EXPECT_EQ(count(module->calls, "training_step"), max_steps);
    EXPECT_EQ(engine.optimizer().num_updates(), max_steps);
    EXPECT_EQ(module->logs.back().global_step, max_steps);
  }
}

TEST(Engine, EndsAfterTheEpochsWithoutMaxSteps) {
  const auto module = toy_module();
  Engine engine(*module, toy_options(), {});
  const auto train = toy_loader(43);  // the last batch has 3 samples
  engine.fit(*train, nullptr);
  EXPECT_EQ(engine.state().global_step, 12);
  EXPECT_EQ(engine.state().num_samples, 86);
  EXPECT_EQ(count(module->calls, "training_epoch_end"), 2);
  EXPECT_FALSE(engine.state().metric);
}

TEST(Engine, EvaluatesAndLogsAsOftenAsAsked) {
  const auto module = toy_module();
  EngineOptions options = toy_options();
  options.run_mode = EngineOptions::RunMode::Step;
  options.eval_freq = 3;
  options.eval_iters = 2;
  options.logging_freq = 4;
  Engine engine(*module, options,
                {.checkpoint_folder = {}, .label = {}, .target = accuracy_target(2), .observers = {}});
  const auto train = toy_loader(40);
  const auto eval = toy_loader(40, false);
  engine.fit(*train, eval.get());  // 10 steps: evaluations at 3, 6, 9 and the end
  EXPECT_EQ(count(module->calls, "validation_epoch_end"), 4);
  EXPECT_EQ(count(module->calls, "validation_step"), 8);
  std::vector<int64_t> logged;
  for (const TrainLog& log : module->logs) logged.push_back(log.global_step);
  EXPECT_EQ(logged, (std::vector<int64_t>{4, 8, 10}));
  EXPECT_EQ(engine.state().evaluated_at_step, 10);
  EXPECT_FALSE(engine.state().converged);
}

TEST(Engine, StopsAtTheTargetOnlyWhenConfigured) {
  for (const bool stop : {true, false}) {
    const auto module = toy_module();
    EngineOptions options = toy_options();
    options.run_mode = EngineOptions::RunMode::Epoch;
    options.num_epochs = 6;
    options.eval_freq = 1;
    options.stop_at_target = stop;
    Engine engine(*module, options,
                  {.checkpoint_folder = {}, .label = {}, .target = accuracy_target(0.3), .observers = {}});
    const auto train = toy_loader(40);
    const auto eval = toy_loader(30, false);
    engine.fit(*train, eval.get());
    EXPECT_TRUE(engine.state().converged);
    ASSERT_TRUE(engine.state().converged_at_step);
    EXPECT_EQ(engine.state().global_step, stop ? *engine.state().converged_at_step : 30);
  }
}

TEST(Engine, MatchesOneBatchByAccumulatedMicroBatches) {
  const auto weights_after = [](int64_t accumulate) {
    const auto module = toy_module();
    module->model().eval();
    EngineOptions options = toy_options();
    options.accumulate_steps = accumulate;
    options.max_steps = 6;
    for (auto& child : module->model().children()) {
      if (auto* dropout = dynamic_cast<torch::nn::DropoutImpl*>(child.get())) dropout->options.p(0);
    }
    Engine engine(*module, options, {});
    const auto train = toy_loader(43);  // the sixth batch has 3 samples and splits unevenly
    engine.fit(*train, nullptr);
    EXPECT_EQ(count(module->calls, "training_step"), accumulate == 1 ? 6 : 5 * accumulate + (accumulate == 2 ? 2 : 3));
    return torch::cat({module->model().parameters()[0].flatten(), module->model().parameters()[1]}).detach().clone();
  };
  const torch::Tensor whole = weights_after(1);
  EXPECT_TRUE(torch::allclose(whole, weights_after(2), 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(whole, weights_after(4), 1e-5, 1e-6));
}

TEST(Engine, StopsBeforeTheUpdateAtANonFiniteLoss) {
  const auto module = toy_module();
  int calls = 0;
  module->on_loss = [&](const torch::Tensor& loss) { return ++calls == 4 ? loss * NAN : loss; };
  EngineOptions options = toy_options();
  options.max_steps = 3;
  Engine engine(*module, options, {});
  const auto train = toy_loader(40);
  engine.fit(*train, nullptr);
  const torch::Tensor before = module->model().parameters()[0].detach().clone();
  EngineOptions more = toy_options();
  Engine next(*module, more, {});
  try {
    next.fit(*train, nullptr);
    FAIL() << "no error";
  } catch (const NonFiniteError& error) {
    EXPECT_NE(std::string(error.what()).find("step 1 "), std::string::npos) << error.what();
  }
  EXPECT_TRUE(before.equal(module->model().parameters()[0].detach()));
}

// A finite loss whose gradients are not, and nothing is clipped or scaled.
TEST(Engine, StopsBeforeTheUpdateAtNonFiniteGradients) {
  for (const std::string& rule : Optimizer::names()) {
    for (const double poison : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
      const auto module = toy_module();
      int calls = 0;
      NamedTensors before;
      module->on_loss = [&](const torch::Tensor& loss) {
        if (++calls == 7) {
          for (const auto& [name, tensor] : state_of(module->model())) before.emplace_back(name, tensor.clone());
          loss.register_hook([poison](const torch::Tensor& gradient) { return gradient * poison; });
        }
        return loss;
      };
      EngineOptions options = toy_options();
      options.optimizer.name = rule;
      options.schedule.learning_rate = 0.01;
      Engine engine(*module, options, {});
      const auto train = toy_loader(40);  // five batches an epoch
      try {
        engine.fit(*train, nullptr);
        FAIL() << "no error";
      } catch (const NonFiniteError& error) {
        const std::string said = error.what();
        EXPECT_NE(said.find("step 7 (epoch 1, batch 2): the norm of the gradients is "), std::string::npos) << said;
        EXPECT_NE(said.find("the weights were not changed"), std::string::npos) << said;
      }
      EXPECT_EQ(hash_of(state_of(module->model())), hash_of(before)) << rule;
      EXPECT_EQ(engine.optimizer().num_updates(), 6);
      EXPECT_EQ(engine.state().global_step, 6);
    }
  }
}

// Every logged loss of a run as raw bits.
std::vector<uint64_t> losses_of(const ToyModule& module) {
  std::vector<uint64_t> bits;
  for (const TrainLog& log : module.logs) {
    uint64_t value = 0;
    std::memcpy(&value, &log.loss, sizeof value);
    bits.push_back(value);
  }
  return bits;
}

EngineServices saving_to(const fs::path& folder) {
  return {.checkpoint_folder = folder, .label = {"toy", "hash"}, .target = accuracy_target(2), .observers = {}};
}

TEST(Engine, ResumesBitwiseFromEveryStep) {
  EngineOptions options = toy_options();
  options.save_steps = 1;
  options.save_epoch = 1;
  options.logging_freq = 3;  // windows span checkpoints
  options.schedule.name = "one_cycle";
  const auto uninterrupted = toy_module();
  const TempFolder first("engine");
  Engine engine(*uninterrupted, options, saving_to(first.path()));
  const auto train = toy_loader(40);
  const auto eval = toy_loader(24, false);
  engine.fit(*train, eval.get());
  const std::string weights = hash_of(state_of(uninterrupted->model()));
  const auto checkpoints = list_checkpoints(first.path());
  ASSERT_EQ(checkpoints.size(), 12u);  // ten steps, and two more at the ends of epochs

  for (const fs::path& checkpoint : checkpoints) {
    torch::manual_seed(77);
    auto module = std::make_unique<ToyModule>();
    module->init();
    Engine resumed(*module, options,
                   {.checkpoint_folder = {}, .label = {}, .target = accuracy_target(2), .observers = {}});
    resumed.load(checkpoint);
    resumed.fit(*train, eval.get());
    EXPECT_EQ(resumed.state().global_step, 10) << checkpoint;
    EXPECT_EQ(hash_of(state_of(module->model())), weights) << checkpoint;
    EXPECT_EQ(resumed.state().metric, engine.state().metric);
    const auto all = losses_of(*uninterrupted);
    const auto rest = losses_of(*module);
    ASSERT_LE(rest.size(), all.size());
    EXPECT_TRUE(std::equal(rest.rbegin(), rest.rend(), all.rbegin())) << checkpoint;
  }
}

// The samples that were asked for, in their order; a loader without threads asks for those it trains on.
class SeenData final : public Dataset {
 public:
  int64_t size() const override { return toy_.size(); }
  std::string hash() const override { return "seen"; }
  Batch gather(std::span<const int64_t> indices, int64_t epoch) const override {
    seen.insert(seen.end(), indices.begin(), indices.end());
    return toy_.gather(indices, epoch);
  }
  mutable std::vector<int64_t> seen;

 private:
  ToyData toy_{40};
};

std::unique_ptr<Loader> seen_loader(const std::shared_ptr<SeenData>& data, int64_t batch_size) {
  return std::make_unique<Loader>(
      data, Sampler::Options{.num_samples = data->size(), .batch_size = batch_size, .shuffle = true, .seed = 3},
      Loader::Options{.num_workers = 0});
}

// Two steps of 8 samples, then batches of 16: every epoch still sees every sample once.
TEST(Engine, ContinuesAtTheSampleReachedWithBatchesOfAnotherSize) {
  const TempFolder folder("engine");
  const auto module = toy_module();
  EngineOptions options = toy_options();
  EngineServices services = saving_to(folder.path());
  int asked = 0;
  services.stop_requested = [&] { return ++asked == 2; };
  Engine engine(*module, options, services);
  const auto data = std::make_shared<SeenData>();
  EXPECT_THROW(engine.fit(*seen_loader(data, 8), nullptr), InterruptedError);
  EXPECT_EQ(engine.state().consumed_samples, 16);
  const std::vector<int64_t> first = data->seen;
  const fs::path checkpoint = list_checkpoints(folder.path()).front();
  options.ckpt_dir = checkpoint;
  const auto continue_with = [&](int64_t batch_size) {
    data->seen = first;
    const auto again = toy_module();
    Engine continued(*again, options, {});
    EXPECT_TRUE(continued.resume());
    continued.fit(*seen_loader(data, batch_size), nullptr);
    return continued.state();
  };
  const TrainingState larger = continue_with(16);
  ASSERT_EQ(data->seen.size(), 80u);
  for (const int epoch : {0, 1}) {
    const auto begin = data->seen.begin() + epoch * 40;
    EXPECT_EQ(std::set<int64_t>(begin, begin + 40).size(), 40u) << "epoch " << epoch;
  }
  EXPECT_EQ(larger.global_step, 2 + 2 + 3);
  EXPECT_EQ(larger.epoch, 2);
  EXPECT_EQ(larger.num_samples, 80);

  // A checkpoint of before the count was kept continues in batches of its own size.
  const TrainingState same = continue_with(8);
  const std::vector<int64_t> expected = data->seen;
  Json meta = read_json_file(checkpoint / "meta.json");
  ASSERT_EQ(meta.at("state").erase("consumed_samples"), 1u);
  write_file_atomic(checkpoint / "meta.json", to_pretty(meta));
  EXPECT_EQ(continue_with(8).global_step, same.global_step);
  EXPECT_EQ(data->seen, expected);
}

TEST(Engine, SavesAtAStopRequestAndContinues) {
  const TempFolder folder("engine");
  const auto whole = toy_module();
  const EngineOptions options = toy_options();
  Engine reference(*whole, options, {});
  const auto train = toy_loader(40);
  reference.fit(*train, nullptr);

  const auto module = toy_module();
  EngineServices services = saving_to(folder.path());
  int asked = 0;
  services.stop_requested = [&] { return ++asked == 4; };
  Engine engine(*module, options, services);
  EXPECT_FALSE(engine.resume());
  EXPECT_THROW(engine.fit(*train, nullptr), InterruptedError);
  EXPECT_EQ(engine.state().global_step, 4);

  const auto again = toy_module();
  Engine resumed(*again, options, saving_to(folder.path()));
  EXPECT_TRUE(resumed.resume());
  EXPECT_EQ(resumed.state().global_step, 4);
  resumed.fit(*train, nullptr);
  EXPECT_EQ(hash_of(state_of(again->model())), hash_of(state_of(whole->model())));
}

TEST(Engine, RejectsACheckpointOfAnotherConfigurationUnlessRequested) {
  const TempFolder folder("engine");
  const auto module = toy_module();
  EngineOptions options = toy_options();
  options.save_epoch = 1;
  Engine engine(*module, options, saving_to(folder.path()));
  const auto train = toy_loader(40);
  engine.fit(*train, nullptr);
  EngineServices other = saving_to(folder.path());
  other.label.config_hash = "other";
  Engine second(*module, options, other);
  EXPECT_THROW(second.resume(), ConfigError);
  options.ckpt_dir = list_checkpoints(folder.path()).front();
  const TempFolder elsewhere("engine");
  other.checkpoint_folder = elsewhere.path();
  Engine third(*module, options, other);
  EXPECT_TRUE(third.resume());
}

class WideToyNetwork final : public Network {
 public:
  WideToyNetwork() : linear_(register_module("linear", torch::nn::Linear(4, 7))) {}
  torch::Tensor forward(const TensorList& inputs) override { return linear_->forward(inputs.at(0)); }

 private:
  torch::nn::Linear linear_;
};
class WideToyModule final : public ToyModule {
 public:
  std::shared_ptr<Network> get_model() override { return std::make_shared<WideToyNetwork>(); }
};

class DamageObserver final : public EngineObserver {
 public:
  std::vector<std::string> damaged;
  void on_event(std::string_view name, const Json& data) override {
    if (name == keys::kDamagedCheckpoint) damaged.push_back(data.at("checkpoint").get<std::string>());
  }
};

// Its tensors do not fit, and that is another configuration, not damage: nothing starts anew in its folder.
TEST(Engine, DoesNotCallACheckpointOfAnotherModelOrOptimizerDamaged) {
  const TempFolder folder("engine");
  const auto module = toy_module();
  EngineOptions options = toy_options();
  options.save_epoch = 1;
  Engine engine(*module, options, saving_to(folder.path()));
  const auto train = toy_loader(40);
  engine.fit(*train, nullptr);

  const auto expect_refused = [&](Module& other, const EngineOptions& other_options) {
    DamageObserver damage;
    EngineServices services = saving_to(folder.path());
    services.label.config_hash = "other";
    services.observers = {&damage};
    Engine next(other, other_options, services);
    const std::string before = hash_of(state_of(other.model()));
    try {
      next.resume();
      FAIL() << "no error";
    } catch (const ConfigError& error) {
      const std::string said = error.what();
      EXPECT_NE(said.find("epoch_2_step_10 was made with another configuration (hash hash, now other)"),
                std::string::npos)
          << said;
    }
    EXPECT_TRUE(damage.damaged.empty());
    EXPECT_EQ(hash_of(state_of(other.model())), before);
  };
  WideToyModule wide;
  wide.init();
  expect_refused(wide, options);
  EngineOptions adam = options;
  adam.optimizer.name = "Adam";
  expect_refused(*toy_module(), adam);
}

TEST(Engine, KeepsTheOrderOfTheDataInPredictions) {
  const auto module = toy_module();
  Engine engine(*module, toy_options(), {});
  const auto data = toy_loader(20, false);
  const Predictions predictions = engine.predict(*data, std::nullopt);
  EXPECT_EQ(predictions.outputs.sizes(), (std::vector<int64_t>{20, 3}));
  EXPECT_TRUE(predictions.labels.equal(torch::arange(20).remainder(3)));
  EXPECT_EQ(count(module->calls, "test_step"), 3);
  EXPECT_EQ(engine.predict(*data, 2).outputs.size(0), 16);
}

TEST(Engine, RecordsWhatHappened) {
  const TempFolder folder("engine");
  const fs::path path = folder.path() / "records.jsonl";
  {
    RecordWriter writer(path);
    RecordObserver observer(writer, accuracy_target(0.3), "rows");
    const auto module = toy_module();
    EngineOptions options = toy_options();
    options.logging_freq = 5;
    Engine engine(*module, options,
                  {.checkpoint_folder = {}, .label = {}, .target = accuracy_target(0.3), .observers = {&observer}});
    const auto train = toy_loader(40);
    const auto eval = toy_loader(24, false);
    engine.fit(*train, eval.get());
  }
  const std::vector<Record> records = read_records(path);
  std::vector<std::string> events;
  std::vector<std::string> described;
  int train_metrics = 0;
  for (const Record& record : records) {
    if (record.type == Record::Type::Event) events.push_back(record.name);
    if (record.type == Record::Type::Metadata) described.push_back(record.name);
    if (record.type != Record::Type::Metrics) continue;
    EXPECT_TRUE(record.data.contains(keys::kGlobalStep));
    for (const auto& [name, value] : record.data.items()) {
      EXPECT_TRUE(is_number(value) || (name == keys::kTrainMfu && value.is_null())) << name;
    }
    if (!record.data.contains(keys::kTrainLoss)) continue;
    ++train_metrics;
    EXPECT_EQ(record.step->size(), 2u);
    EXPECT_NEAR(number_of(record.data[keys::kTrainComputeTime]),
                number_of(record.data[keys::kTrainForwardTime]) + number_of(record.data[keys::kTrainBackwardTime]) +
                    number_of(record.data[keys::kTrainOptimizerTime]),
                1e-12);
  }
  EXPECT_EQ(train_metrics, 2);
  EXPECT_EQ(events, (std::vector<std::string>{"CONVERT_MODEL", "CREATE_OPTIMIZER", "MODEL_TO_DDP", "TRAIN_START",
                                              "EPOCH_BEGIN", "EPOCH_END", "EPOCH_BEGIN", "EPOCH_END", "INIT_EVALUATION",
                                              "EVALUATE", "TRAIN_END"}));
  EXPECT_NE(std::find(described.begin(), described.end(), keys::kValMetric), described.end());
}

}  // namespace
}  // namespace assay
