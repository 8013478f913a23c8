// How long a step with a checkpoint takes: in the background, and when training waits for the disk. Prints JSON.
#include <fmt/format.h>
#include <torch/utils.h>

#include <algorithm>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "device/allocator.h"
#include "device/threads.h"
#include "engine/loop/engine.h"
#include "engine/loop/event_handler.h"
#include "models/registry.h"
#include "record/keys.h"

namespace assay {
namespace {

constexpr int64_t kWidth = 2048;  // 17 million parameters: with Adam's moments a checkpoint of 200 MB
constexpr int64_t kBatch = 128;
constexpr int64_t kSteps = 90;
constexpr int64_t kSaveSteps = 15;

class RandomImages final : public Dataset {
 public:
  int64_t size() const override { return kBatch * kSteps; }
  std::string hash() const override { return "random"; }
  Batch gather(std::span<const int64_t> indices, int64_t /*epoch*/) const override {
    const auto count = static_cast<int64_t>(indices.size());
    return {{images_.narrow(0, 0, count), labels_.narrow(0, 0, count)}, count};
  }

 private:
  torch::Tensor images_ = torch::randn({kBatch, kWidth});
  torch::Tensor labels_ = torch::randint(10, {kBatch});
};

// Time from the beginning of a step to that of the next, with everything between.
class StepTimes final : public EventHandler {
 public:
  void on_step_begin(const Json&) override {
    if (num_steps_++ > 0) (num_steps_ % kSaveSteps == 1 ? with_save : plain).push_back(watch_.seconds() * 1e3);
    watch_.restart();
  }
  std::vector<double> plain;      // ms
  std::vector<double> with_save;  // ms

 private:
  int64_t num_steps_ = 0;
  Stopwatch watch_;
};

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

Json measure(bool wait) {
  torch::manual_seed(1);
  const Json section = {{"name", "simplenet"}, {"image_size", kWidth}};
  const std::unique_ptr<Module> module = make_module(Reader(section, "Model"));
  const TempFolder folder("checkpoint-bench");
  StepTimes times;
  EngineOptions options;
  options.logging_freq = kSteps;
  options.optimizer.name = "Adam";
  options.save_steps = kSaveSteps;
  options.keep_last = 1;
  Engine* running = nullptr;
  Engine engine(*module, options,
                {.checkpoint_folder = folder.path(),
                 .label = {"bench", "none"},
                 .target = {},
                 .observers = {&times},
                 .stop_requested = [&] {
                   if (wait) running->finish_saving();
                   return false;
                 }});
  running = &engine;
  Loader train(std::make_shared<RandomImages>(), {.num_samples = kBatch * kSteps, .batch_size = kBatch}, {});
  engine.fit(train, nullptr);
  uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return {{"checkpoint_bytes", bytes},
          {"plain_ms", middle(times.plain)},
          {"with_save_ms", middle(times.with_save)},
          {"train_s", engine.state().train_s}};
}

}  // namespace
}  // namespace assay

int main() {
  assay::install_caching_allocator();
  assay::configure_threads(1);
  const assay::Json waiting = assay::measure(true);
  const assay::Json background = assay::measure(false);
  fmt::print("{}\n", assay::to_pretty({{"waiting", waiting}, {"background", background}}));
}
