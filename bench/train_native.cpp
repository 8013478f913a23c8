// Trains one model through the engine on weights and samples from files, and writes how fast that was. bench/train runs
// it beside bench/train_peer.py, which does the same in plain PyTorch.
//   train_native MODEL --weights W --data D --batch B --steps N --warm-up K --result OUT.json
// bench/scale runs it as one of several ranks, by RANK, WORLD_SIZE and MASTER_PORT, on their share of the batch.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "base/files.h"
#include "bench_models.h"
#include "data/loader.h"
#include "device/allocator.h"
#include "device/blas_kernels.h"
#include "device/cpu.h"
#include "device/threads.h"
#include "engine/checkpoint/tensor_file.h"
#include "engine/loop/engine.h"
#include "parallel/mesh_strategy.h"

namespace assay {
namespace {

// Samples of a safetensors file: tensors "0", "1", ... of equal length, the last one the label.
class TensorData final : public Dataset {
 public:
  explicit TensorData(const std::filesystem::path& path) {
    for (auto& [name, tensor] : load_tensors(path).tensors) tensors_.push_back(tensor);
  }
  int64_t size() const override { return tensors_.at(0).size(0); }
  std::string hash() const override { return ""; }
  Batch gather(std::span<const int64_t> indices, int64_t /*epoch*/) const override {
    const torch::Tensor index = torch::tensor(std::vector<int64_t>(indices.begin(), indices.end()));
    Batch batch{{}, static_cast<int64_t>(indices.size())};
    for (const torch::Tensor& tensor : tensors_) batch.tensors.push_back(tensor.index_select(0, index));
    return batch;
  }

 private:
  std::vector<torch::Tensor> tensors_;
};

struct Arguments {
  std::string model;
  std::filesystem::path weights, data, result;
  int64_t batch = 1, steps = 1, warm_up = 1;
  int sharding_stage = 0;  // 0: data parallel
  double bucket_mb = 16;
  bool no_sync = false;  // gradients stay where they are: what the rest costs
};

int environment(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : fallback;
}

// The other ranks and what is shared with them; nothing with one rank.
struct Ranks {
  std::unique_ptr<World> world;
  std::unique_ptr<MeshStrategy> strategy;
};
Ranks join(const Arguments& a, int world_size) {
  if (world_size == 1) return {};
  Ranks ranks{
      World::join(
          {.rank = environment("RANK", 0), .world_size = world_size, .master_port = environment("MASTER_PORT", 0)}),
      nullptr};
  ParallelOptions options;
  (a.sharding_stage > 0 ? options.sharding : options.data) = world_size;
  if (a.sharding_stage > 0) options.sharding_stage = a.sharding_stage;
  options.bucket_bytes = static_cast<int64_t>(a.bucket_mb * 1e6);
  if (a.no_sync) options.broken = "dp-no-sync";
  ranks.strategy = std::make_unique<MeshStrategy>(options, MeshStrategy::Services{.world = *ranks.world});
  return ranks;
}

class Collector final : public EngineObserver {
 public:
  explicit Collector(int64_t warm_up) : warm_up_(warm_up) {}
  void on_train_log(const TrainLog& log) override {
    losses.push_back(log.loss);
    if (log.global_step <= warm_up_) return;
    seconds.push_back(log.batch_cost_s);
    forward_s += log.forward_s;
    backward_s += log.backward_s;
    optimizer_s += log.optimizer_s;
    comm_s += log.comm_s.value_or(0);
  }
  std::vector<double> losses, seconds;
  double forward_s = 0, backward_s = 0, optimizer_s = 0, comm_s = 0;

 private:
  int64_t warm_up_;
};

Json train(const Arguments& a) {
  install_caching_allocator();
  const int world_size = environment("WORLD_SIZE", 1);
  configure_threads(world_size);
  const Ranks ranks = join(a, world_size);
  const BenchModel& entry = bench_model(a.model);
  const std::unique_ptr<Module> module = entry.make();
  module->init();
  load_into(module->model(), load_tensors(a.weights).tensors, a.weights.string());
  const auto data = std::make_shared<TensorData>(a.data);

  EngineOptions options;
  options.num_epochs = 1 + (a.warm_up + a.steps) * a.batch / data->size();
  options.max_steps = a.warm_up + a.steps;
  options.logging_freq = 1;
  options.local_batch_size = a.batch / world_size;
  options.num_replicas = world_size;
  options.optimizer = entry.optimizer;
  options.schedule.learning_rate = entry.learning_rate;
  Loader loader(data,
                {.num_samples = data->size(),
                 .batch_size = a.batch / world_size,
                 .shuffle = false,
                 .drop_last = true,
                 .seed = 0,
                 .num_replicas = world_size,
                 .replica = environment("RANK", 0)},
                {.num_workers = 1, .prefetch = 2});
  Collector collector(a.warm_up);
  EngineServices services;
  services.observers = {&collector};
  services.strategy = ranks.strategy.get();
  Engine engine(*module, options, std::move(services));
  engine.fit(loader, nullptr);

  if (ranks.world) ranks.world->leave();
  const double total = std::accumulate(collector.seconds.begin(), collector.seconds.end(), 0.0);
  const auto steps = static_cast<double>(collector.seconds.size());
  return {{"samples_per_s", steps * static_cast<double>(a.batch) / total},
          {"losses", collector.losses},
          {"forward_ms", collector.forward_s / steps * 1e3},
          {"backward_ms", collector.backward_s / steps * 1e3},
          {"optimizer_ms", collector.optimizer_s / steps * 1e3},
          {"comm_ms", collector.comm_s / steps * 1e3},
          {"peak_tensor_bytes", allocator_stats().peak_bytes},
          {"peak_bytes", *peak_resident_bytes()}};
}

int run(int argc, char** argv) {
  Arguments a;
  CLI::App app("training speed of one model");
  app.add_option("model", a.model)->required();
  app.add_option("--weights", a.weights)->required();
  app.add_option("--data", a.data)->required();
  app.add_option("--result", a.result)->required();
  app.add_option("--batch", a.batch)->required();
  app.add_option("--steps", a.steps)->required();
  app.add_option("--warm-up", a.warm_up)->required();
  app.add_option("--sharding-stage", a.sharding_stage);
  app.add_option("--bucket-mb", a.bucket_mb);
  app.add_flag("--no-sync", a.no_sync);
  CLI11_PARSE(app, argc, argv);
  try {
    write_file_atomic(a.result, train(a).dump());
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "train_native: {}\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace assay

ASSAY_CHOOSE_BLAS_KERNELS

int main(int argc, char** argv) { return assay::run(argc, argv); }
