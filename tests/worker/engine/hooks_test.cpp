// A module that writes down every hook, and a handler that writes down every event, in one list: the order of a run.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "engine/loop/event_handler.h"
#include "record/keys.h"
#include "toy.h"

namespace assay {
namespace {

using Calls = std::vector<std::string>;

// Events in capitals, between the hooks.
class EventList final : public EventHandler {
 public:
  explicit EventList(Calls& calls) : calls_(calls) {}
  void on_init_start(const Json&) override { add("INIT_START"); }
  void on_convert_model(const Json&) override { add("CONVERT_MODEL"); }
  void on_create_optimizer(const Json&) override { add("CREATE_OPTIMIZER"); }
  void on_model_to_fp16(const Json&) override { add("MODEL_TO_FP16"); }
  void on_model_to_ddp(const Json&) override { add("MODEL_TO_DDP"); }
  void on_submit_info(const Json&) override { add("SUBMIT_INFO"); }
  void on_init_end(const Json&) override { add("INIT_END"); }
  void on_launch_training(const Json&) override { add("LAUNCH_TRAINING"); }
  void on_finished(const Json&) override { add("FINISHED"); }
  void on_train_start(const Json&) override { add("TRAIN_START"); }
  void on_train_end(const Json&) override { add("TRAIN_END"); }
  void on_epoch_begin(const Json&) override { add("EPOCH_BEGIN"); }
  void on_epoch_end(const Json&) override { add("EPOCH_END"); }
  void on_step_begin(const Json& data) override { add("STEP_BEGIN"), steps.push_back(data); }
  void on_step_end(const Json& data) override { add("STEP_END"), steps.push_back(data); }
  void on_backward(const Json& data) override { add("BACKWARD"), steps.push_back(data); }
  void on_init_evaluation(const Json&) override { add("INIT_EVALUATION"); }
  void on_evaluate(const Json&) override { add("EVALUATE"); }
  void on_other(std::string_view name, const Json&) override {
    if (name != keys::kCheckpoint) add(name);  // written in the background: its place is not fixed
  }

  std::vector<Json> steps;

 private:
  void add(std::string_view name) { calls_.emplace_back(name); }
  Calls& calls_;
};

class RecordingModule final : public ToyModule {
 public:
  EventList events{calls};
  void process_configs(const EngineOptions& options) override {
    calls.emplace_back("process_configs");
    if (options.num_epochs > 100) throw ConfigError("Engine.num_train_epochs: too many for this model");
  }
  torch::Tensor forward(const TensorList& inputs) override {
    calls.emplace_back("forward");
    return ToyModule::forward(inputs);
  }
  std::vector<EngineObserver*> event_handlers() override { return {&events}; }
};

Calls operator+(Calls a, const Calls& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Calls kInit = {"get_model",     "get_loss_fn",          "INIT_START",       "process_configs",
                     "CONVERT_MODEL", "configure_optimizers", "CREATE_OPTIMIZER", "MODEL_TO_DDP"};
const Calls kMicroBatch = {"training_step", "forward", "BACKWARD", "backward"};
const Calls kStep = Calls{"STEP_BEGIN", "pretreating_batch"} + kMicroBatch + kMicroBatch + Calls{"STEP_END"};
const Calls kLog = {"training_step_end"};
const Calls kEvaluation = {"INIT_EVALUATION",     "pretreating_batch",    "validation_step", "forward",
                           "validation_step_end", "validation_epoch_end", "EVALUATE"};
const Calls kEpochEnd = {"training_epoch_end", "EPOCH_END"};

// Three batches an epoch, two micro-batches an update.
EngineOptions hook_options(EngineOptions::RunMode mode) {
  EngineOptions options = toy_options();
  options.run_mode = mode;
  options.accumulate_steps = 2;
  options.logging_freq = 2;
  return options;
}

struct HookRun {
  explicit HookRun(const EngineOptions& options, fs::path folder = {})
      : engine((torch::manual_seed(11), module.init(), module), options,
               {.checkpoint_folder = std::move(folder),
                .label = {"toy", "hash"},
                .target = Target{.metric = "accuracy", .value = 2, .goal = Goal::Maximize},
                .observers = {}}) {}
  void fit() { engine.fit(*train, eval.get()); }
  RecordingModule module;
  Engine engine;
  std::unique_ptr<Loader> train = toy_loader(24);
  std::unique_ptr<Loader> eval = toy_loader(8, false);
};

TEST(Hooks, CallInStepMode) {
  EngineOptions options = hook_options(EngineOptions::RunMode::Step);
  options.max_steps = 4;
  options.eval_freq = 2;
  options.save_steps = 2;
  const TempFolder folder("hooks");
  HookRun run(options, folder.path());
  run.fit();
  const Calls expected = kInit + Calls{"TRAIN_START", "EPOCH_BEGIN"} + kStep + kStep + kLog + kEvaluation + kStep +
                         kEpochEnd + Calls{"EPOCH_BEGIN"} + kStep + kLog + kEvaluation + Calls{"TRAIN_END"};
  EXPECT_EQ(run.module.calls, expected);
  EXPECT_EQ(checkpoint_names(folder.path()), (std::vector<std::string>{"epoch_1_step_4", "epoch_0_step_2"}));
}

TEST(Hooks, CallInEpochMode) {
  EngineOptions options = hook_options(EngineOptions::RunMode::Epoch);
  options.eval_freq = 1;
  options.save_epoch = 1;
  const TempFolder folder("hooks");
  HookRun run(options, folder.path());
  run.fit();
  const Calls expected = kInit + Calls{"TRAIN_START", "EPOCH_BEGIN"} + kStep + kStep + kLog + kStep + kEpochEnd +
                         kEvaluation + Calls{"EPOCH_BEGIN"} + kStep + kLog + kStep + kStep + kLog + kEpochEnd +
                         kEvaluation + Calls{"TRAIN_END"};
  EXPECT_EQ(run.module.calls, expected);
  EXPECT_EQ(checkpoint_names(folder.path()), (std::vector<std::string>{"epoch_2_step_6", "epoch_1_step_3"}));
}

TEST(Hooks, EvaluateAtTheEndWhenThereWasNone) {
  EngineOptions options = hook_options(EngineOptions::RunMode::Step);
  options.max_steps = 1;
  HookRun run(options);
  run.fit();
  const Calls expected = kInit + Calls{"TRAIN_START", "EPOCH_BEGIN"} + kStep + kLog + kEvaluation + Calls{"TRAIN_END"};
  EXPECT_EQ(run.module.calls, expected);
}

TEST(Hooks, RepeatTheRestOfAnEpochWhenResumed) {
  EngineOptions options = hook_options(EngineOptions::RunMode::Step);
  options.eval_freq = 4;
  options.save_steps = 1;
  const TempFolder folder("hooks");
  HookRun whole(options, folder.path());
  whole.fit();
  for (const int64_t step : {1, 2, 4, 5}) {
    HookRun rest(options);
    rest.engine.load(folder.path() / fmt::format("epoch_{}_step_{}", step / 3, step));
    rest.fit();
    const Calls begin = kInit + Calls{"RESUMED", "TRAIN_START"};
    ASSERT_GT(rest.module.calls.size(), begin.size());
    EXPECT_TRUE(std::equal(begin.begin(), begin.end(), rest.module.calls.begin()));
    const Calls& all = whole.module.calls;
    const int64_t num_rest = static_cast<int64_t>(rest.module.calls.size() - begin.size());
    EXPECT_TRUE(std::equal(all.end() - num_rest, all.end(), rest.module.calls.begin() + begin.size())) << step;
    EXPECT_EQ(std::count(rest.module.calls.begin(), rest.module.calls.end(), "STEP_BEGIN"), 6 - step);
  }
}

TEST(Hooks, CallInPrediction) {
  HookRun run(hook_options(EngineOptions::RunMode::Step));
  run.engine.predict(*run.eval, std::nullopt);
  const Calls expected =
      kInit + Calls{"pretreating_batch", "test_step", "forward", "test_step_end", "validation_epoch_end"};
  EXPECT_EQ(run.module.calls, expected);
}

TEST(Hooks, LetAModuleRejectOptions) {
  EngineOptions options = hook_options(EngineOptions::RunMode::Step);
  options.num_epochs = 101;
  EXPECT_THROW(HookRun{options}, ConfigError);
}

TEST(Hooks, AddAnEventAtLevelO2) {
  EngineOptions options = hook_options(EngineOptions::RunMode::Step);
  options.precision.mixed = torch::kBFloat16;
  options.precision.low_weights = true;
  const HookRun run(options);
  Calls expected = kInit;
  expected.insert(expected.end() - 1, "MODEL_TO_FP16");
  EXPECT_EQ(run.module.calls, expected);
}

// Those of the program around the engine (apps/assay-worker/train.cpp) reach a module's handler through it. That the
// program sends them is shown by tests/cli/worker_test.py.
TEST(Hooks, PassEventsOfTheProgramToHandlers) {
  HookRun run(hook_options(EngineOptions::RunMode::Step));
  run.module.calls.clear();
  for (const char* event : {keys::kSubmitInfo, keys::kInitEnd, keys::kLaunchTraining, keys::kFinished}) {
    run.engine.notify(event);
  }
  EXPECT_EQ(run.module.calls, (Calls{"SUBMIT_INFO", "INIT_END", "LAUNCH_TRAINING", "FINISHED"}));
}

TEST(Hooks, DescribeWhatHappenedInAStep) {
  EngineOptions options = hook_options(EngineOptions::RunMode::Step);
  options.max_steps = 2;
  HookRun run(options);
  run.fit();
  const std::vector<Json>& steps = run.module.events.steps;
  ASSERT_EQ(steps.size(), 8u);
  EXPECT_EQ(steps[4], (Json{{"global_step", 1}, {"epoch", 0}, {"batch", 2}}));
  EXPECT_EQ(steps[6].at("micro_batch"), 2);
  EXPECT_EQ(steps[7].at("global_step"), 2);
  EXPECT_EQ(steps[7].at("num_samples"), 16);
  const double mean = (number_of(steps[5].at("loss")) + number_of(steps[6].at("loss"))) / 2;
  EXPECT_NEAR(number_of(steps[7].at("loss")), mean, 1e-12);
}

// FlagPerf's list, from its documentation.
TEST(EventHandler, HasAMethodForEachOfFlagPerfsEvents) {
  struct All final : EventHandler {
    std::string called;
    void on_init_start(const Json&) override { called = "INIT_START"; }
    void on_init_end(const Json&) override { called = "INIT_END"; }
    void on_train_start(const Json&) override { called = "TRAIN_START"; }
    void on_train_end(const Json&) override { called = "TRAIN_END"; }
    void on_epoch_begin(const Json&) override { called = "EPOCH_BEGIN"; }
    void on_epoch_end(const Json&) override { called = "EPOCH_END"; }
    void on_step_begin(const Json&) override { called = "STEP_BEGIN"; }
    void on_step_end(const Json&) override { called = "STEP_END"; }
    void on_backward(const Json&) override { called = "BACKWARD"; }
    void on_init_evaluation(const Json&) override { called = "INIT_EVALUATION"; }
    void on_evaluate(const Json&) override { called = "EVALUATE"; }
    void on_launch_training(const Json&) override { called = "LAUNCH_TRAINING"; }
    void on_convert_model(const Json&) override { called = "CONVERT_MODEL"; }
    void on_create_optimizer(const Json&) override { called = "CREATE_OPTIMIZER"; }
    void on_model_to_fp16(const Json&) override { called = "MODEL_TO_FP16"; }
    void on_model_to_ddp(const Json&) override { called = "MODEL_TO_DDP"; }
    void on_finished(const Json&) override { called = "FINISHED"; }
    void on_submit_info(const Json&) override { called = "SUBMIT_INFO"; }
    void on_other(std::string_view name, const Json&) override { called = fmt::format("other {}", name); }
  } handler;
  for (const char* name :
       {"INIT_START", "INIT_END", "TRAIN_START", "TRAIN_END", "EPOCH_BEGIN", "EPOCH_END", "STEP_BEGIN", "STEP_END",
        "BACKWARD", "INIT_EVALUATION", "EVALUATE", "LAUNCH_TRAINING", "CONVERT_MODEL", "CREATE_OPTIMIZER",
        "MODEL_TO_FP16", "MODEL_TO_DDP", "FINISHED", "SUBMIT_INFO"}) {
    handler.on_event(name, Json::object());
    EXPECT_EQ(handler.called, name);
  }
  handler.on_event("RESUMED", Json::object());
  EXPECT_EQ(handler.called, "other RESUMED");
}

}  // namespace
}  // namespace assay
