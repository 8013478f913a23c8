#include <fmt/format.h>

#include "base/signals.h"
#include "base/version.h"
#include "commands.h"
#include "device/cpu.h"
#include "engine/engine.h"
#include "engine/record_observer.h"
#include "engine/tensor_file.h"
#include "record/keys.h"

namespace assay {

namespace {

// What was not measured is null, never 0.
Json per_second(int64_t count, double seconds) {
  return seconds > 0 && count > 0 ? Json(static_cast<double>(count) / seconds) : Json(nullptr);
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json result_of(const Job& job, const TrainingState& s, const std::string& unit) {
  const Target& target = job.config().target;
  return {{keys::kE2eTime, s.end_to_end_s},
          {keys::kInitTime, s.init_s},
          {keys::kRawTrainTime, s.train_s},
          {keys::kNoEvalTime, s.no_eval_s},
          {keys::kPureComputeTime, s.compute_s},
          {keys::kThroughputWhole, per_second(s.num_samples, s.train_s)},
          {keys::kThroughputTrain, per_second(s.num_samples, s.no_eval_s)},
          {keys::kThroughputCore, per_second(s.num_samples, s.compute_s)},
          {keys::kThroughputUnit, unit + "/s"},
          {keys::kConverged, s.evaluated_at_step ? Json(s.converged) : Json(nullptr)},
          {"converged_at_step", or_null(s.converged_at_step)},
          {keys::kFinalAccuracy, or_null(s.metric)},
          {"final_loss", or_null(s.eval_loss)},
          {keys::kTarget, to_json(target)},
          {keys::kSteps, s.global_step},
          {"num_samples", s.num_samples},
          {keys::kMfu, nullptr},
          {keys::kPeakMemory, or_null(peak_resident_bytes())},
          {keys::kEnergy, nullptr},
          {keys::kSeed, job.options().seed}};
}

}  // namespace

void run_train(Job& job) {
  const std::unique_ptr<Module> module = job.make_module();
  const std::unique_ptr<Loader> train = job.need_loader("Train");
  const std::unique_ptr<Loader> eval =
      make_loader(job.config(), "Eval", job.options().local_batch_size, static_cast<uint64_t>(job.options().seed));
  RecordObserver recorder(job.records(), job.config().target, module->sample_unit());
  Engine engine(*module, job.options(),
                {.checkpoint_folder = job.arguments().output / "checkpoints",
                 .label = {job.config().case_name, job.config().hash},
                 .target = job.config().target,
                 .observers = {&recorder},
                 .stop_requested = [] { return stop_signal() != 0; },
                 .started = job.started()});
  if (engine.resume()) {
    fmt::print("[resume] epoch: {}, step: {}\n", engine.state().epoch, engine.state().global_step);
    std::fflush(stdout);
  }
  write_event(job.records(), keys::kInitEnd, {{"num_parameters", num_parameters(*module)}});

  engine.fit(*train, eval.get());

  const NamedTensors weights = state_of(module->model());
  const std::string weights_hash = hash_of(weights);
  save_tensors(job.arguments().output / "model.safetensors", weights,
               {{"case", job.config().case_name},
                {"config_hash", job.config().hash},
                {"weights_hash", weights_hash},
                {"code", commit()}});
  TrainingState state = engine.state();
  state.end_to_end_s += job.started().seconds() - engine.measured_until_s();
  Json result = result_of(job, state, module->sample_unit());
  result[keys::kHashes] = job.hashes(*train, weights_hash);
  job.write_result(result);
}

}  // namespace assay
