// What follows from metrics and losses: early stop, the best checkpoints, spikes, and the figures of a log line.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "engine/checkpoint/tensor_file.h"
#include "engine/loop/spike_guard.h"
#include "toy.h"

namespace assay {
namespace {

// Its evaluations come from a list; the step decides which, so that a resumed run sees the same.
class ScriptedModule final : public ToyModule {
 public:
  std::vector<double> script;
  const Engine* engine = nullptr;
  MetricValues validation_epoch_end(int64_t epoch, const EvalSums& sums) override {
    MetricValues metrics = Module::validation_epoch_end(epoch, sums);
    metrics["accuracy"] = script.at(static_cast<size_t>(engine->state().global_step - 1));
    return metrics;
  }
};

struct ScriptedRun {
  ScriptedRun(std::vector<double> script, const EngineOptions& options, fs::path folder = {},
              Goal goal = Goal::Maximize)
      : engine((torch::manual_seed(11), module.init(), module), options,
               {.checkpoint_folder = std::move(folder),
                .label = {"toy", "hash"},
                .target = Target{.metric = "accuracy", .value = goal == Goal::Maximize ? 2.0 : -2.0, .goal = goal},
                .observers = {}}) {
    module.script = std::move(script);
    module.engine = &engine;
  }
  void fit() { engine.fit(*train, eval.get()); }
  ScriptedModule module;
  Engine engine;
  std::unique_ptr<Loader> train = toy_loader(40);
  std::unique_ptr<Loader> eval = toy_loader(8, false);
};

EngineOptions every_step() {
  EngineOptions options = toy_options();
  options.eval_freq = 1;
  options.logging_freq = 4;
  return options;
}

TEST(Judge, CountsEvaluationsWithoutABetterOneForEarlyStop) {
  EngineOptions options = every_step();
  options.early_stop = 3;
  options.save_steps = 1;
  const std::vector<double> script = {0.1, 0.3, 0.2, 0.3, 0.25, 0.9, 0.9, 0.9, 0.9, 0.9};  // equal is not better
  const TempFolder folder("judge");
  ScriptedRun run(script, options, folder.path());
  run.fit();
  EXPECT_EQ(run.engine.state().global_step, 5);
  EXPECT_EQ(run.engine.state().best_metric, 0.3);
  EXPECT_EQ(run.module.logs.back().global_step, 5);  // the steps after the last full window are logged too

  for (const char* name : {"epoch_0_step_3", "epoch_0_step_5"}) {
    ScriptedRun resumed(script, options);
    resumed.engine.load(folder.path() / name);
    resumed.fit();
    EXPECT_EQ(resumed.engine.state().global_step, 5) << name;
    EXPECT_EQ(hash_of(state_of(resumed.module.model())), hash_of(state_of(run.module.model()))) << name;
  }
}

TEST(Judge, LogsTheLastStepOfAnEarlyEnd) {
  EngineOptions options = toy_options();
  options.run_mode = EngineOptions::RunMode::Epoch;
  options.num_epochs = 3;
  options.eval_freq = 1;
  options.early_stop = 1;
  options.logging_freq = 4;
  ScriptedRun run(std::vector<double>(15, 0.5), options);
  run.fit();
  EXPECT_EQ(run.engine.state().global_step, 10);
  const TrainLog& log = run.module.logs.back();
  EXPECT_EQ(std::tuple(log.global_step, log.epoch, log.batch, log.num_batches), std::tuple(10, 1, 5, 5));
}

TEST(Judge, KeepsTheBestCheckpointsBesidesTheLast) {
  EngineOptions options = every_step();
  options.max_steps = 7;
  options.save_steps = 1;
  options.keep_last = 1;
  options.keep_best = 2;
  const TempFolder folder("judge");
  ScriptedRun run({0.1, 0.5, 0.3, 0.6, 0.2, 0.5, 0.4}, options, folder.path());  // 0.5 again: the earlier is kept
  run.fit();
  EXPECT_EQ(checkpoint_names(folder.path()),
            (std::vector<std::string>{"epoch_1_step_7", "epoch_0_step_4", "epoch_0_step_2"}));
  const Json expected = {{"metric", "accuracy"},
                         {"goal", "maximize"},
                         {"checkpoints",
                          {{{"checkpoint", "epoch_0_step_4"}, {"global_step", 4}, {"value", 0.6}},
                           {{"checkpoint", "epoch_0_step_2"}, {"global_step", 2}, {"value", 0.5}}}}};
  EXPECT_EQ(read_json_file(folder.path() / "best.json"), expected);
}

TEST(Judge, SavesTheBestThoughNothingElseIsSaved) {
  EngineOptions options = every_step();
  options.max_steps = 4;
  options.keep_best = 1;
  const TempFolder folder("judge");
  ScriptedRun run({0.4, 0.3, 0.1, 0.2}, options, folder.path(), Goal::Minimize);
  run.fit();
  EXPECT_EQ(read_json_file(folder.path() / "best.json").at("checkpoints").at(0).at("checkpoint"), "epoch_0_step_3");
  EXPECT_EQ(checkpoint_names(folder.path()).front(), "epoch_0_step_3");
}

TEST(Judge, RejectsWhatNeedsEvaluationsWithoutThem) {
  for (const int which : {0, 1, 2}) {
    EngineOptions options = toy_options();
    if (which == 0) options.early_stop = 1;
    if (which == 1) options.keep_best = 1;
    if (which == 2) options.stop_at_target = true;
    ScriptedRun run({}, options);
    EXPECT_THROW(run.engine.fit(*run.train, nullptr), ConfigError) << which;
  }
}

TEST(SpikeGuard, ComputesTheMedianByItsDefinition) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(SpikeGuard, JudgesOnceTheWindowIsFull) {
  const SpikeGuard guard({.window = 3, .factor = 2});
  std::vector<double> recent;
  for (const double loss : {9.0, 1.0, 3.0}) {
    EXPECT_FALSE(guard.limit(recent));
    guard.add(recent, loss);
  }
  EXPECT_EQ(guard.limit(recent), 6.0);
  guard.add(recent, 2.0);
  EXPECT_EQ(recent, (std::vector<double>{1, 3, 2}));
  EXPECT_EQ(guard.limit(recent), 4.0);
  EXPECT_FALSE(guard.limit({-1, -2, -3}));
}

// A run whose seventh loss is a hundred times what it should be.
struct SpikedRun {
  explicit SpikedRun(const EngineOptions& options, const fs::path& folder = {})
      : engine(*module, options,
               {.checkpoint_folder = folder, .label = {"toy", "hash"}, .target = {}, .observers = {}}) {
    module->on_loss = [this](const torch::Tensor& loss) { return engine.state().global_step == 6 ? loss * 100 : loss; };
  }
  std::string message() {
    try {
      engine.fit(*train, nullptr);
    } catch (const LossSpikeError& error) {
      return error.what();
    }
    return "no spike";
  }
  std::unique_ptr<ToyModule> module = toy_module();
  Engine engine;
  std::unique_ptr<Loader> train = toy_loader(40);
};

TEST(Spike, StopsBeforeTheUpdateAndNamesStepAndBatch) {
  EngineOptions options = toy_options();
  options.save_steps = 1;
  options.spike = {.window = 4, .factor = 3};
  const TempFolder folder("spike");
  SpikedRun run(options, folder.path());
  const std::string message = run.message();
  EXPECT_NE(message.find("at step 7 (epoch 1, batch 2)"), std::string::npos) << message;
  EXPECT_NE(message.find("before this update"), std::string::npos);
  const LoadedTensors saved = load_tensors(folder.path() / "epoch_1_step_6/model.safetensors");
  EXPECT_EQ(saved.metadata.at("weights_hash"), hash_of(state_of(run.module->model())));

  for (const char* name : {"epoch_0_step_2", "epoch_0_step_4", "epoch_1_step_6"}) {
    SpikedRun resumed(options);
    resumed.engine.load(folder.path() / name);
    EXPECT_EQ(resumed.message(), message) << name;
  }
  options.spike->window = 7;  // not full yet
  EXPECT_EQ(SpikedRun(options).message(), "no spike");
  options.spike.reset();
  EXPECT_EQ(SpikedRun(options).message(), "no spike");
}

class CountedModule final : public ToyModule {
 public:
  std::optional<double> flops;
  std::optional<double> flops_per_sample() const override { return flops; }
  double units_per_sample() const override { return 128; }
};

TEST(Figures, GiveModelFlopsOverPeakOrUnknown) {
  const auto log_of = [](std::optional<double> flops, std::optional<double> peak) {
    CountedModule module;
    module.flops = flops;
    module.init();
    EngineOptions options = toy_options();
    options.max_steps = 2;
    options.logging_freq = 2;
    EngineServices services;
    services.peak_flops = peak;
    Engine engine(module, options, services);
    const auto train = toy_loader(40);
    engine.fit(*train, nullptr);
    EXPECT_EQ(engine.mfu(10, 0), std::nullopt);
    return module.logs.back();
  };
  const TrainLog log = log_of(5e3, 1e9);
  ASSERT_TRUE(log.mfu);
  EXPECT_NEAR(*log.mfu, 5e3 * log.samples_per_s / 1e9, 1e-12);
  EXPECT_GT(*log.mfu, 0);
  EXPECT_DOUBLE_EQ(log.units_per_s, 128 * log.samples_per_s);
  EXPECT_GT(log.peak_memory_bytes.value(), 1 << 20);
  EXPECT_FALSE(log_of(5e3, std::nullopt).mfu);
  EXPECT_FALSE(log_of(std::nullopt, 1e9).mfu);
}

}  // namespace
}  // namespace assay
