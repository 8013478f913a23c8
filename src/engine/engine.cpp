#include "engine/engine.h"

#include <ATen/autocast_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "record/keys.h"

namespace assay {

namespace {

// A part of a batch, without copying.
Batch slice(const Batch& batch, int64_t begin, int64_t count) {
  Batch part{{}, count};
  for (const torch::Tensor& tensor : batch.tensors) part.tensors.push_back(tensor.narrow(0, begin, count));
  return part;
}

// Forward passes inside it compute in bfloat16 where libtorch deems that safe. Weights stay float32.
class AutocastScope {
 public:
  explicit AutocastScope(bool enable) : enable_(enable) {
    if (!enable_) return;
    at::autocast::set_autocast_cpu_dtype(torch::kBFloat16);
    at::autocast::set_cpu_enabled(true);
  }
  ~AutocastScope() {
    if (!enable_) return;
    at::autocast::set_cpu_enabled(false);
    at::autocast::clear_cache();  // it holds bfloat16 copies of weights that the update is about to change
  }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  bool enable_;
};

}  // namespace

Engine::Engine(Module& module, const EngineOptions& options, EngineServices services)
    : module_(module), options_(options), services_(std::move(services)) {
  optimizer_ = module_.configure_optimizers(options_.optimizer);
}

void Engine::notify(const char* event, const Json& data) {
  for (EngineObserver* observer : services_.observers) observer->on_event(event, data);
}

bool Engine::finished() const { return state_.global_step >= num_steps_ || stopped_at_target_; }

// Brings the times of the state up to now, so that a checkpoint holds them.
void Engine::add_train_time() {
  const double seconds = train_watch_.seconds();
  train_watch_.restart();
  state_.train_s += seconds;
  state_.no_eval_s += seconds - eval_s_;
  eval_s_ = 0;
  measured_until_s_ = services_.started.seconds();
  state_.end_to_end_s = earlier_end_to_end_s_ + measured_until_s_;
}

void Engine::fit(Loader& train, Loader* eval) {
  num_steps_ = total_steps(options_, train.num_batches());
  schedule_ = make_schedule(options_, num_steps_);
  state_.init_s = earlier_init_s_ + services_.started.seconds();
  train_watch_.restart();
  notify(keys::kTrainStart, {{keys::kMaxSteps, num_steps_},
                             {keys::kGlobalStep, state_.global_step},
                             {"num_epochs", options_.num_epochs},
                             {"batches_per_epoch", train.num_batches()},
                             {"batch_size", train.batch_size()},
                             {"num_samples", train.dataset().size()}});
  stopped_at_target_ = options_.stop_at_target && state_.converged;
  while (!finished()) train_epoch(train, eval);
  if (eval && state_.evaluated_at_step != state_.global_step) evaluate_and_judge(*eval);
  if (options_.save_epoch || options_.save_steps) save_if_new();
  add_train_time();
  notify(keys::kTrainEnd, {{keys::kGlobalStep, state_.global_step}, {keys::kConverged, state_.converged}});
}

void Engine::train_epoch(Loader& train, Loader* eval) {
  const Stopwatch epoch_watch;
  module_.model().train();
  if (state_.batch == 0) notify(keys::kEpochBegin, {{"epoch", state_.epoch}});
  train.start(state_.epoch, state_.batch);
  while (!finished()) {
    const Stopwatch step_watch;
    std::optional<Batch> batch = train.next();
    if (!batch) break;
    window_.data_s += step_watch.seconds();
    train_step(std::move(*batch));
    window_.total_s += step_watch.seconds();
    after_step(train, eval);
  }
  if (state_.batch >= train.num_batches()) end_epoch(eval, epoch_watch.seconds());
}

void Engine::train_step(Batch batch) {
  batch = module_.pretreating_batch(std::move(batch));
  const Stopwatch compute_watch;
  const double loss = forward_backward(batch);
  const Stopwatch optimizer_watch;
  try {
    optimizer_->step(schedule_->rate(state_.global_step));
  } catch (const NonFiniteError& error) {
    throw NonFiniteError(fmt::format("step {} (epoch {}, batch {}): {}; the weights were not changed",
                                     state_.global_step + 1, state_.epoch, state_.batch + 1, error.what()));
  }
  optimizer_->clear_grad();
  window_.optimizer_s += optimizer_watch.seconds();
  state_.compute_s += compute_watch.seconds();
  window_.samples += batch.num_samples;
  ++window_.steps;
  state_.window_loss += loss;
  ++state_.window_steps;
  state_.num_samples += batch.num_samples;
  ++state_.batch;
  ++state_.global_step;
}

// All micro-batches of one update; returns the mean loss over the samples. Gradients add up to those of the whole
// batch.
double Engine::forward_backward(const Batch& batch) {
  const int64_t micro_size = (batch.num_samples + options_.accumulate_steps - 1) / options_.accumulate_steps;
  double mean_loss = 0;
  for (int64_t begin = 0; begin < batch.num_samples; begin += micro_size) {
    const int64_t count = std::min(micro_size, batch.num_samples - begin);
    const bool whole = count == batch.num_samples;
    const double share = static_cast<double>(count) / static_cast<double>(batch.num_samples);
    const Stopwatch forward_watch;
    torch::Tensor loss;
    {
      const AutocastScope scope(options_.autocast);
      loss = module_.training_step(whole ? batch : slice(batch, begin, count));
    }
    const double value = loss.item<double>();
    window_.forward_s += forward_watch.seconds();
    if (!std::isfinite(value)) {
      throw NonFiniteError(fmt::format(
          "the loss is {} at step {} (epoch {}, batch {}), learning rate {:g}; training "
          "stopped before this update. A smaller learning rate or Optimizer.grad_clip "
          "usually helps",
          value, state_.global_step + 1, state_.epoch, state_.batch + 1, schedule_->rate(state_.global_step)));
    }
    mean_loss += value * share;
    const Stopwatch backward_watch;
    module_.backward(whole ? loss : loss * share);
    window_.backward_s += backward_watch.seconds();
  }
  return mean_loss;
}

void Engine::after_step(Loader& train, Loader* eval) {
  if (state_.global_step % options_.logging_freq == 0 || finished()) log_window(train);
  const bool step_mode = options_.run_mode == EngineOptions::RunMode::Step;
  if (eval && step_mode && options_.eval_freq && state_.global_step % *options_.eval_freq == 0) {
    evaluate_and_judge(*eval);
    module_.model().train();
  }
  if (options_.save_steps && state_.global_step % *options_.save_steps == 0) save_if_new();
  stop_if_asked();
}

void Engine::log_window(const Loader& train) {
  const auto steps = static_cast<double>(std::max<int64_t>(window_.steps, 1));
  const TrainLog log{.epoch = state_.epoch,
                     .num_epochs = options_.num_epochs,
                     .batch = state_.batch,
                     .num_batches = train.num_batches(),
                     .global_step = state_.global_step,
                     .loss = state_.window_loss / static_cast<double>(state_.window_steps),
                     .learning_rate = schedule_->rate(state_.global_step - 1),
                     .batch_cost_s = window_.total_s / steps,
                     .samples_per_s = static_cast<double>(window_.samples) / window_.total_s,
                     .data_s = window_.data_s / steps,
                     .forward_s = window_.forward_s / steps,
                     .backward_s = window_.backward_s / steps,
                     .optimizer_s = window_.optimizer_s / steps};
  module_.training_step_end(log);
  for (EngineObserver* observer : services_.observers) observer->on_train_log(log);
  window_ = {};
  state_.window_loss = 0;
  state_.window_steps = 0;
}

void Engine::end_epoch(Loader* eval, double seconds) {
  module_.training_epoch_end(state_.epoch, seconds);
  notify(keys::kEpochEnd, {{"epoch", state_.epoch}, {keys::kGlobalStep, state_.global_step}});
  ++state_.epoch;
  state_.batch = 0;
  const bool epoch_mode = options_.run_mode == EngineOptions::RunMode::Epoch;
  if (eval && epoch_mode && options_.eval_freq && state_.epoch % *options_.eval_freq == 0) evaluate_and_judge(*eval);
  if (options_.save_epoch && state_.epoch % *options_.save_epoch == 0) save_if_new();
  stop_if_asked();
}

void Engine::evaluate_and_judge(Loader& eval) {
  const Stopwatch watch;
  const Evaluation evaluation = evaluate(eval, options_.eval_iters);
  eval_s_ += watch.seconds();
  state_.evaluated_at_step = state_.global_step;
  state_.eval_loss = evaluation.metrics.at("loss");
  state_.metric.reset();
  if (services_.target) {
    const auto found = evaluation.metrics.find(services_.target->metric);
    if (found == evaluation.metrics.end()) {
      throw ConfigError(fmt::format("target.metric '{}': this model does not measure it", services_.target->metric));
    }
    state_.metric = found->second;
    const bool maximize = services_.target->goal == Goal::Maximize;
    if (!state_.best_metric ||
        (maximize ? *state_.metric > *state_.best_metric : *state_.metric < *state_.best_metric)) {
      state_.best_metric = state_.metric;
      state_.best_epoch = evaluation.epoch;
    }
    if (services_.target->reached_by(*state_.metric)) {
      if (!state_.converged) state_.converged_at_step = state_.global_step;
      state_.converged = true;
      stopped_at_target_ = options_.stop_at_target;
    }
  }
  for (EngineObserver* observer : services_.observers) observer->on_evaluation(evaluation, state_);
}

Evaluation Engine::evaluate(Loader& loader, std::optional<int64_t> max_batches) {
  notify(keys::kInitEvaluation, {{keys::kGlobalStep, state_.global_step}});
  const Stopwatch watch;
  const EvalSums sums = run_batches(loader, max_batches, /*test=*/false, nullptr);
  // An evaluation after an epoch belongs to the epoch that just ended.
  const int64_t epoch = state_.batch == 0 && state_.epoch > 0 ? state_.epoch - 1 : state_.epoch;
  return {.epoch = epoch,
          .global_step = state_.global_step,
          .num_samples = sums.num_samples,
          .seconds = watch.seconds(),
          .metrics = module_.validation_epoch_end(epoch, sums)};
}

Predictions Engine::predict(Loader& loader, std::optional<int64_t> max_batches) {
  const Stopwatch watch;
  TensorList outputs;
  TensorList labels;
  const EvalSums sums = run_batches(loader, max_batches, /*test=*/true, [&](const Batch& batch, const EvalStep& step) {
    outputs.push_back(step.output);
    labels.push_back(label_of(batch));
  });
  return {.outputs = torch::cat(outputs),
          .labels = torch::cat(labels),
          .evaluation = {.epoch = state_.epoch,
                         .global_step = state_.global_step,
                         .num_samples = sums.num_samples,
                         .seconds = watch.seconds(),
                         .metrics = module_.validation_epoch_end(state_.epoch, sums)}};
}

EvalSums Engine::run_batches(Loader& loader, std::optional<int64_t> max_batches, bool test,
                             const std::function<void(const Batch&, const EvalStep&)>& on_step) {
  const torch::NoGradGuard no_grad;
  module_.model().eval();
  const int64_t num_batches = max_batches ? std::min(*max_batches, loader.num_batches()) : loader.num_batches();
  EvalSums sums;
  loader.start(0);
  for (int64_t i = 0; i < num_batches; ++i) {
    const Stopwatch watch;
    const Batch batch = module_.pretreating_batch(*loader.next());
    const EvalStep step = test ? module_.test_step(batch) : module_.validation_step(batch);
    const double loss = step.loss.item<double>();
    sums.loss += loss * static_cast<double>(step.num_samples);
    sums.num_samples += step.num_samples;
    for (const auto& [name, value] : step.sums) sums.sums[name] += value;
    if (on_step) on_step(batch, step);
    const EvalLog log{.stage = test ? "test" : "eval",
                      .epoch = state_.epoch,
                      .batch = i + 1,
                      .num_batches = num_batches,
                      .loss = loss,
                      .batch_cost_s = watch.seconds()};
    if (log.batch == num_batches || log.batch % options_.logging_freq == 0) {
      test ? module_.test_step_end(log) : module_.validation_step_end(log);
    }
  }
  return sums;
}

fs::path Engine::save() {
  ASSAY_CHECK(!services_.checkpoint_folder.empty(), "the engine has no checkpoint folder");
  add_train_time();
  saved_position_ = std::pair(state_.epoch, state_.global_step);
  return save_checkpoint(services_.checkpoint_folder, module_, *optimizer_, state_, services_.label);
}

void Engine::load(const fs::path& checkpoint) {
  adopt(checkpoint, load_checkpoint(checkpoint, module_, *optimizer_).state);
}

void Engine::adopt(const fs::path& checkpoint, const TrainingState& state) {
  state_ = state;
  earlier_end_to_end_s_ = state_.end_to_end_s;
  earlier_init_s_ = state_.init_s;
  notify(keys::kResumed, {{keys::kGlobalStep, state_.global_step},
                          {"epoch", state_.epoch},
                          {"batch", state_.batch},
                          {"checkpoint", checkpoint.string()}});
}

bool Engine::resume() {
  const auto on_damaged = [&](const fs::path& path, const std::string& reason) {
    notify(kDamagedCheckpoint, {{"checkpoint", path.string()}, {"reason", reason}});
  };
  if (!services_.checkpoint_folder.empty()) {
    const auto found = load_newest_checkpoint(services_.checkpoint_folder, module_, *optimizer_, on_damaged);
    if (found) {
      if (found->loaded.label.config_hash != services_.label.config_hash) {
        throw ConfigError(
            fmt::format("{} was made with another configuration (hash {:.12}, now {:.12}): choose another "
                        "output folder, or set Engine.save_load.ckpt_dir to start from it on purpose",
                        found->path.string(), found->loaded.label.config_hash, services_.label.config_hash));
      }
      adopt(found->path, found->loaded.state);
      saved_position_ = std::pair(state_.epoch, state_.global_step);
      return true;
    }
  }
  if (!options_.ckpt_dir) return false;
  load(*options_.ckpt_dir);
  return true;
}

void Engine::export_model(const std::function<void(Module&)>& exporter) {
  const torch::NoGradGuard no_grad;
  module_.model().eval();
  exporter(module_);
}

void Engine::save_if_new() {
  if (!services_.checkpoint_folder.empty() && saved_position_ != std::pair(state_.epoch, state_.global_step)) save();
}

void Engine::stop_if_asked() {
  if (!services_.stop_requested() || finished()) return;
  if (services_.checkpoint_folder.empty()) {
    throw InterruptedError(fmt::format("stopped after step {} of {}", state_.global_step, num_steps_));
  }
  const fs::path path = save();
  throw InterruptedError(fmt::format("stopped after step {} of {}; saved {}: the same command continues from there",
                                     state_.global_step, num_steps_, path.string()));
}

}  // namespace assay
