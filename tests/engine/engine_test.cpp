#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "engine/record_observer.h"
#include "engine/tensor_file.h"
#include "record/keys.h"
#include "toy.h"

namespace assay {
namespace {

int count(const std::vector<std::string>& calls, const std::string& name) {
  return static_cast<int>(std::count(calls.begin(), calls.end(), name));
}

Target accuracy_target(double value) { return {.metric = "accuracy", .value = value, .goal = Goal::Maximize}; }

TEST(Engine, HooksInTheirOrder) {
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

TEST(Engine, EpochsEndTrainingWithoutMaxSteps) {
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

TEST(Engine, StopsAtTheTargetOnlyWhenToldTo) {
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

TEST(Engine, AccumulatedMicroBatchesEqualOneBatch) {
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

TEST(Engine, NonFiniteLossStopsBeforeTheUpdate) {
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

TEST(Engine, AStopRequestSavesAndIsContinuedFrom) {
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

TEST(Engine, ACheckpointOfAnotherConfigurationIsRefusedUnlessAskedFor) {
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

TEST(Engine, PredictKeepsTheOrderOfTheData) {
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
