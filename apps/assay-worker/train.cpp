#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cstdlib>
#include <functional>

#include "base/json.h"
#include "base/signals.h"
#include "base/text.h"
#include "base/version.h"
#include "commands.h"
#include "device/cpu.h"
#include "engine/checkpoint/tensor_file.h"
#include "engine/loop/engine.h"
#include "engine/loop/profiler.h"
#include "engine/loop/record_observer.h"
#include "parallel/mesh_strategy.h"
#include "parallel/parameter_server.h"
#include "record/keys.h"
#include "record/tensorboard.h"

namespace assay {

namespace {

// What was not measured is null, never 0.
Json per_second(double count, double seconds) {
  return seconds > 0 && count > 0 ? Json(count / seconds) : Json(nullptr);
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// Tells whoever watches where a run begins and how it ended.
class RunConsole final : public EngineObserver {
 public:
  void on_event(std::string_view name, const Json& data) override {
    const auto text = [&](const char* key) { return data.at(key).get<std::string>(); };
    if (name == keys::kResumed) {
      fmt::print("[resume] epoch: {}, step: {}, checkpoint: {}, weights: {:.12}\n", data.at("epoch").get<int64_t>(),
                 data.at(keys::kGlobalStep).get<int64_t>(), text("checkpoint"), text("weights_hash"));
    } else if (name == keys::kDamagedCheckpoint) {
      fmt::print("[resume] damaged, passed over: {}: {}\n", text("checkpoint"), text("reason"));
    } else if (name == keys::kPretrained) {
      fmt::print("[pretrained] {}, weights: {:.12}\n", text("path"), text("weights_hash"));
    } else if (name == keys::kIdleOperators) {
      fmt::print("[precision] listed in Engine.mix_precision, but not run by the first step of this process: {}\n",
                 join(data.at("operators").get<std::vector<std::string>>(), ", "));
    } else if (name == keys::kFinished) {
      fmt::print("[finished] steps: {}, seconds: {:.1f}\n", data.at(keys::kSteps).get<int64_t>(),
                 number_of(data.at(keys::kE2eTime)));
    } else {
      return;
    }
    std::fflush(stdout);
  }
};

Json result_of(const Job& job, const Engine& engine, const TrainingState& s) {
  const Target& target = job.config().target;
  const Module& module = engine.module();
  const double units = static_cast<double>(s.num_samples) * module.units_per_sample();
  return {{keys::kE2eTime, s.end_to_end_s},
          {keys::kInitTime, s.init_s},
          {keys::kRawTrainTime, s.train_s},
          {keys::kNoEvalTime, s.no_eval_s},
          {keys::kPureComputeTime, s.compute_s},
          {keys::kThroughputWhole, per_second(units, s.train_s)},
          {keys::kThroughputTrain, per_second(units, s.no_eval_s)},
          {keys::kThroughputCore, per_second(units, s.compute_s)},
          {keys::kThroughputUnit, module.sample_unit() + "/s"},
          {keys::kConverged, s.evaluated_at_step ? Json(s.converged) : Json(nullptr)},
          {"converged_at_step", or_null(s.converged_at_step)},
          {keys::kFinalAccuracy, or_null(s.metric)},
          {keys::kFinalLoss, or_null(s.eval_loss)},
          {keys::kTarget, to_json(target)},
          {keys::kSteps, s.global_step},
          {keys::kNumSamples, s.num_samples},
          {keys::kMfu, or_null(engine.mfu(s.num_samples, s.no_eval_s))},
          {keys::kPeakMemory, or_null(peak_resident_bytes())},
          {keys::kEnergy, nullptr},
          {keys::kSeed, job.options().seed}};
}

void write_outcome(Job& job, Engine& engine, const Loader& train, const NamedTensors& weights) {
  const std::string weights_hash = hash_of(weights);
  save_tensors(job.arguments().output / "model.safetensors", weights,
               {{"case", job.config().case_name},
                {"config_hash", job.config().hash},
                {"weights_hash", weights_hash},
                {"code", commit()}});
  TrainingState state = engine.state();
  state.end_to_end_s += job.started().seconds() - engine.measured_until_s();
  Json result = result_of(job, engine, state);
  result[keys::kHashes] = job.hashes(train, weights_hash);
  job.write_result(result);
  engine.notify(keys::kFinished, result);
}

// How the processes of a job share the training.
struct Sharing {
  Strategy* strategy = nullptr;  // null: there is one process
  bool shares_evaluation = true;
  Json processes = nullptr;  // for the records
  std::function<void()> after_last_step = [] {};
};

std::filesystem::path checkpoint_folder(const Job& job) { return job.arguments().output / "checkpoints"; }

void train_as(Job& job, const Sharing& sharing) {
  const Topology topology = sharing.strategy ? sharing.strategy->topology() : Topology{};
  const Replicas replicas{
      .count = topology.num_replicas, .index = topology.replica, .num_parts = job.options().accumulate_steps};
  const std::unique_ptr<Module> module = job.make_module();
  const int64_t parameters = num_parameters(*module);
  const std::unique_ptr<Loader> train = job.need_loader("Train", replicas);
  const std::unique_ptr<Loader> eval =
      make_loader(job.config(), "Eval", job.options().local_batch_size, static_cast<uint64_t>(job.options().seed),
                  sharing.shares_evaluation ? Replicas{.count = replicas.count, .index = replicas.index} : Replicas{});
  RecordObserver recorder(job.records(), job.config().target, module->sample_unit());
  RunConsole console;
  std::vector<EngineObserver*> observers = {&recorder, &console};
  std::optional<Profiler> profiler;
  if (std::optional<EngineOptions::ProfileWindow> window = job.options().profile) {
    window->folder = job.arguments().output / window->folder;
    observers.push_back(&profiler.emplace(*window));
  }
  if (job.options().tensorboard) {
    job.records().add_backend(std::make_unique<TensorBoardWriter>(job.arguments().output / "tensorboard"));
  }
  Engine engine(*module, job.options(),
                {.checkpoint_folder = checkpoint_folder(job),
                 .label = {job.config().case_name, job.config().hash, read_json_file(job.arguments().config)},
                 .target = job.config().target,
                 .observers = std::move(observers),
                 .stop_requested = [] { return stop_signal() != 0; },
                 .started = job.started(),
                 .peak_flops = job.peak_flops(),
                 .adapter = &job.adapter(),
                 .strategy = sharing.strategy});
  engine.notify(keys::kSubmitInfo, {{"case", job.config().key},
                                    {"division", division_name(job.config().division)},
                                    {"config_hash", job.config().hash},
                                    {"code", commit()}});
  engine.resume();
  engine.notify(keys::kInitEnd, {{"num_parameters", parameters}});
  engine.notify(keys::kLaunchTraining, {{"device", job.options().device},
                                        {"threads", at::get_num_threads()},
                                        {"world_size", job.rank().world_size},
                                        {"processes", sharing.processes}});

  engine.fit(*train, eval.get());
  engine.adopt_average();
  sharing.after_last_step();

  const NamedTensors weights = engine.whole_weights();
  if (topology.is_writer) write_outcome(job, engine, *train, weights);
}

void train_in_mesh(Job& job) {
  ParallelOptions parallel = read_parallel_options(job.config(), job.rank().world_size);
  if (const char* broken = std::getenv("ASSAY_BREAK_STRATEGY")) {
    parallel.broken = broken;
    write_event(job.records(), "BROKEN_ON_PURPOSE", {{"strategy", parallel.broken}});
  }
  comm::World* world = job.join_world(parallel);
  if (world) fmt::print("[processes] {}\n", world->describe());
  std::unique_ptr<MeshStrategy> strategy;
  if (world) {
    strategy = std::make_unique<MeshStrategy>(
        parallel, MeshStrategy::Services{.world = *world,
                                         .seed = job.options().seed,
                                         .checkpoint_folder = checkpoint_folder(job),
                                         .on_replica_differs = [&](const Json& data) {
                                           write_event(job.records(), keys::kReplicaDiffers, data);
                                         }});
  }
  train_as(job, {.strategy = strategy.get(), .processes = world ? Json(world->describe()) : Json(nullptr)});
  if (world) world->leave();
}

void train_with_servers(Job& job) {
  const std::unique_ptr<ParameterServerStrategy> strategy = connect_to_servers(job);
  fmt::print("[processes] {}\n", strategy->topology().description);
  try {
    train_as(job, {.strategy = strategy.get(),
                   .shares_evaluation = strategy->shares_evaluation(),
                   .processes = strategy->topology().description,
                   .after_last_step = [&] { strategy->finish(); }});
    strategy->leave();
  } catch (const std::exception& error) {
    strategy->fail(error.what());
    throw;
  }
}

}  // namespace

void run_train(Job& job) {
  if (job.server_role() && job.server_role()->is_server) return run_serve(job);
  if (job.server_role() || read_server_options(job.config())) return train_with_servers(job);
  train_in_mesh(job);
}

}  // namespace assay
