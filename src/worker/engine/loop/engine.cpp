#include "engine/loop/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "device/cpu.h"
#include "record/keys.h"

namespace assay {

namespace {

// A part of a batch, without copying.
Batch slice(const Batch& batch, int64_t begin, int64_t count) {
  Batch part{.tensors = {}, .num_samples = count};
  for (const torch::Tensor& tensor : batch.tensors) part.tensors.push_back(tensor.narrow(0, begin, count));
  return part;
}

}  // namespace

Engine::Engine(Module& module, const EngineOptions& options, EngineServices services)
    : module_(module),
      options_(options),
      services_(std::move(services)),
      precision_(options.precision),
      strategy_(services_.strategy ? *services_.strategy : one_process_),
      topology_(strategy_.topology()) {
  for (EngineObserver* handler : module_.event_handlers()) services_.observers.push_back(handler);
  for (EngineObserver* observer : services_.observers) {
    if (observer->wants_step_events()) step_observers_.push_back(observer);
  }
  if (options_.spike) spike_guard_.emplace(*options_.spike);
  notify(keys::kInitStart, {{"case", services_.label.case_name}});
  module_.process_configs(options_);
  Adapter& adapter = this->adapter();
  convert_model(adapter);
  strategy_.prepare(module_, options_);
  Updater::Parts parts;
  parts.optimizer = strategy_.create_optimizer(options_.optimizer);
  if (!parts.optimizer) parts.optimizer = adapter.create_optimizer(module_, options_.optimizer);
  if (!parts.optimizer)
    throw ConfigError(fmt::format("adapter '{}': create_optimizer returned no optimizer", adapter.name()));
  notify(keys::kCreateOptimizer, {{"adapter", adapter.name()}, {"optimizer", options_.optimizer.name}});
  if (options_.precision.low_weights) {
    low_weights_ = strategy_.create_low_weights(*options_.precision.mixed);
    if (!low_weights_) low_weights_ = adapter.model_to_fp16(module_.model(), *options_.precision.mixed);
    if (!low_weights_) throw ConfigError(fmt::format("adapter '{}': model_to_fp16 returned nothing", adapter.name()));
    notify(keys::kModelToFp16, {{"adapter", adapter.name()}, {"dtype", precision_name(options_.precision)}});
  }
  adapter.model_to_ddp(module_.model());
  notify(keys::kModelToDdp, {{"adapter", adapter.name()}, {"strategy", topology_.description}});
  if (options_.precision.scaling) {
    parts.scaler = adapter.create_grad_scaler(*options_.precision.scaling);
    if (!parts.scaler)
      throw ConfigError(fmt::format("adapter '{}': create_grad_scaler returned no scaler", adapter.name()));
  }
  if (options_.optimizer.ema_decay) {
    parts.average = std::make_unique<WeightAverage>(module_.trained_parameters(), *options_.optimizer.ema_decay);
  }
  optimizer_ = std::make_unique<Updater>(std::move(parts));
}

// A vendor's network is taken for the module's only when it has the same parameters.
void Engine::convert_model(Adapter& adapter) {
  const auto shapes_of = [](const Network& network) {
    std::map<std::string, std::vector<int64_t>> shapes;
    for (const auto& item : network.named_parameters()) shapes[item.key()] = item.value().sizes().vec();
    return shapes;
  };
  const auto before = shapes_of(module_.model());
  std::shared_ptr<Network> converted = adapter.convert_model(module_.network());
  if (!converted) throw ConfigError(fmt::format("adapter '{}': convert_model returned no network", adapter.name()));
  const auto after = shapes_of(*converted);
  for (const auto& [name, shape] : before) {
    const auto found = after.find(name);
    if (found == after.end() || found->second != shape) {
      throw ConfigError(fmt::format("adapter '{}': convert_model changed the {} of parameter '{}'", adapter.name(),
                                    found == after.end() ? "name" : "shape", name));
    }
  }
  if (after.size() != before.size()) {
    throw ConfigError(fmt::format("adapter '{}': convert_model returned {} parameters instead of {}", adapter.name(),
                                  after.size(), before.size()));
  }
  precision_.convert(*converted);
  module_.replace_network(std::move(converted));
  notify(keys::kConvertModel, {{"adapter", adapter.name()}});
}

void Engine::notify(const char* event, const Json& data) {
  for (EngineObserver* observer : services_.observers) observer->on_event(event, data);
}

void Engine::notify_step(const char* event, const Json& data) {
  for (EngineObserver* observer : step_observers_) observer->on_event(event, data);
}

bool Engine::finished() const { return state_.global_step >= num_steps_ || ended_early_; }

std::optional<double> Engine::mfu(int64_t num_samples, double seconds) const {
  const std::optional<double> flops = module_.flops_per_sample();
  if (!flops || !services_.peak_flops || !(seconds > 0)) return std::nullopt;
  return *flops * static_cast<double>(num_samples) / (seconds * *services_.peak_flops * topology_.world_size);
}

void Engine::validate_options(const Loader* eval) const {
  const auto need = [&](const char* key, bool wanted) {
    if (!wanted || (eval && services_.target)) return;
    throw ConfigError(fmt::format("{}: needs evaluations and a target, but {}", key,
                                  eval ? "the case has no target" : "there is no section Data.Eval"));
  };
  need("Engine.stop_at_target", options_.stop_at_target);
  need("Engine.early_stop", options_.early_stop.has_value());
  need("Engine.save_load.keep_best", options_.keep_best.has_value());
}

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
  validate_options(eval);
  try {
    run_training(train, eval);
  } catch (...) {
    if (writer_) writer_->settle();
    throw;
  }
}

// How many steps are left, in batches of this run's size: those of the run that is continued may have been others.
void Engine::restore_position(const Loader& train) {
  const int64_t whole = train.global_batch_size();
  if (!state_.consumed_samples) state_.consumed_samples = state_.batch * whole;
  state_.batch = (*state_.consumed_samples + whole - 1) / whole;
  const int64_t left = train.num_batches(*state_.consumed_samples);
  const int64_t in_all = state_.global_step + left + (options_.num_epochs - state_.epoch - 1) * train.num_batches();
  num_steps_ = options_.max_steps ? std::min(*options_.max_steps, in_all) : in_all;
}

void Engine::run_training(Loader& train, Loader* eval) {
  restore_position(train);
  schedule_ = make_schedule(options_, num_steps_);
  state_.init_s = earlier_init_s_ + services_.started.seconds();
  train_watch_.restart();
  notify(keys::kTrainStart, {{keys::kMaxSteps, num_steps_},
                             {keys::kGlobalStep, state_.global_step},
                             {"num_epochs", options_.num_epochs},
                             {"batches_per_epoch", train.num_batches()},
                             {"batch_size", train.batch_size()},
                             {"num_samples", train.dataset().size()}});
  ended_early_ = (options_.stop_at_target && state_.converged) ||
                 (options_.early_stop && state_.evaluations_without_better >= *options_.early_stop);
  while (!finished()) train_epoch(train, eval);
  if (window_.steps > 0) log_window(train);  // an early end comes between two log lines
  if (eval && state_.evaluated_at_step != state_.global_step) evaluate_and_judge(*eval);
  if (options_.save_epoch || options_.save_steps) save_if_new();
  finish_saving();
  add_train_time();
  notify(keys::kTrainEnd, {{keys::kGlobalStep, state_.global_step}, {keys::kConverged, state_.converged}});
}

void Engine::train_epoch(Loader& train, Loader* eval) {
  const Stopwatch epoch_watch;
  module_.model().train();
  if (state_.batch == 0) notify(keys::kEpochBegin, {{"epoch", state_.epoch}});
  train.start(state_.epoch, *state_.consumed_samples);
  while (!finished()) {
    const Stopwatch step_watch;
    std::optional<Batch> batch = train.next();
    if (!batch) break;
    window_.data_s += step_watch.seconds();
    if (!step_observers_.empty()) {
      notify_step(keys::kStepBegin,
                  {{keys::kGlobalStep, state_.global_step}, {"epoch", state_.epoch}, {"batch", state_.batch + 1}});
    }
    train_step(std::move(*batch));
    window_.total_s += step_watch.seconds();
    if (!step_observers_.empty()) {
      notify_step(keys::kStepEnd, {{keys::kGlobalStep, state_.global_step},
                                   {"epoch", state_.epoch},
                                   {"batch", state_.batch},
                                   {"loss", json_number(last_loss_)},
                                   {"num_samples", state_.num_samples}});
    }
    after_step(train, eval);
  }
  if (train.at_end()) end_epoch(eval, epoch_watch.seconds());
}

void Engine::train_step(Batch batch) {
  batch = precision_.convert(module_.pretreating_batch(std::move(batch)));
  const int64_t num_samples = batch.whole_size();
  const double learning_rate = schedule_->rate(schedule_position(num_samples));
  window_.learning_rate = learning_rate;
  const Stopwatch compute_watch;
  const double loss = forward_backward(batch);
  if (spike_guard_ && std::isfinite(loss)) stop_at_spike(loss);
  const Stopwatch optimizer_watch;
  const bool updated = update_weights(loss, learning_rate);
  strategy_.step().after_update();
  optimizer_->clear_grad();
  window_.optimizer_s += optimizer_watch.seconds();
  window_.comm_s += strategy_.step().comm_seconds();
  state_.compute_s += compute_watch.seconds();
  window_.samples += num_samples;
  ++window_.steps;
  last_loss_ = loss;
  if (std::isfinite(loss)) {
    if (spike_guard_) spike_guard_->add(state_.recent_losses, loss);
    state_.window_loss += loss;
    ++state_.window_steps;
  }
  if (!updated) ++state_.window_found_inf;
  state_.num_samples += num_samples;
  *state_.consumed_samples += num_samples;
  ++state_.batch;
  ++state_.global_step;
  report_unused_operators();
}

// After the first step of this process, which has run everything that steps run.
void Engine::report_unused_operators() {
  if (std::exchange(operators_told_, true)) return;
  const std::vector<std::string> idle = precision_.idle_operators();
  if (!idle.empty()) notify(keys::kIdleOperators, {{"operators", idle}});
}

// "step 12 (epoch 0, batch 12)", of the step being made.
std::string Engine::where() const {
  return fmt::format("step {} (epoch {}, batch {})", state_.global_step + 1, state_.epoch, state_.batch + 1);
}

Schedule::Position Engine::schedule_position(int64_t num_samples) const {
  if (!options_.schedule_by_samples) return {state_.global_step, 1};
  return {state_.num_samples, num_samples};
}

// False when the step was skipped: only with a loss scaler, which then has a smaller scale for the next one.
bool Engine::update_weights(double loss, double learning_rate) {
  const double scale = optimizer_->loss_scale();
  bool updated = false;
  try {
    if (std::isfinite(loss)) {
      updated = !optimizer_->step({.learning_rate = learning_rate}).skipped;
    } else {
      optimizer_->skip();
    }
  } catch (const NonFiniteError& error) {
    throw NonFiniteError(fmt::format("{}: {}; the weights were not changed", where(), error.what()));
  }
  if (!updated) {
    notify(
        keys::kStepSkipped,
        {{keys::kGlobalStep, state_.global_step + 1}, {"loss_scale", scale}, {"next_scale", optimizer_->loss_scale()}});
  }
  return updated;
}

// The parts of a batch that are computed at once, as many on every process that shares it.
std::vector<MicroBatch> Engine::micro_batches(const Batch& batch) {
  const int64_t fewest = std::max<int64_t>(batch.whole_size() / topology_.num_replicas, 1);
  const int64_t count = std::min(options_.accumulate_steps, fewest);
  std::vector<MicroBatch> parts;
  double weight = 0;
  bool counts_samples = true;
  for (int64_t i = 0; i < count; ++i) {
    const PartRange range = part_range(batch.num_samples, i, count);
    parts.push_back({count == 1 ? batch : slice(batch, range.begin, range.count()), 0});
    const std::optional<double> loss_weight = module_.loss_weight(parts.back().batch);
    counts_samples = counts_samples && !loss_weight;
    parts.back().share = loss_weight.value_or(static_cast<double>(range.count()));
    weight += parts.back().share;
  }
  const double total =
      counts_samples ? static_cast<double>(batch.whole_size()) : strategy_.step().sum_over_replicas(weight);
  for (MicroBatch& part : parts) part.share /= total;
  return parts;
}

// All micro-batches of one update; returns the mean loss of the step, over all processes. Gradients add up to those of
// the whole batch, times the loss scale.
double Engine::forward_backward(const Batch& batch) {
  StepExchange& exchange = strategy_.step();
  exchange.begin_step(state_.global_step + 1);
  const std::vector<MicroBatch> parts = micro_batches(batch);
  exchange.bring_weights(parts);
  double loss = 0;
  {
    const std::unique_ptr<WeightSwap> low_weights = low_weights_ ? low_weights_->use() : nullptr;
    loss = run_micro_batches(parts);
  }
  if (topology_.is_alone) return loss;
  const Stopwatch watch;
  exchange.finish_gradients();
  const StepAgreement agreed = exchange.agree({.loss = loss, .stop = services_.stop_requested()});
  window_.backward_s += watch.seconds();
  stop_agreed_ = agreed.stop;
  if (!std::isfinite(agreed.loss) && !optimizer_->may_skip()) stop_at_non_finite(agreed.loss);
  return agreed.loss;
}

double Engine::run_micro_batches(const std::vector<MicroBatch>& parts) {
  StepTools tools{.module = module_,
                  .autocast = [this] { return precision_.autocast(); },
                  .backward = [this](const torch::Tensor& loss, double share) { backward(loss, share); },
                  .forward_s = window_.forward_s,
                  .backward_s = window_.backward_s};
  StepExchange& exchange = strategy_.step();
  if (MicroBatchSchedule* schedule = exchange.schedule()) return schedule->run(parts, tools);
  double mean_loss = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    exchange.before_micro_batch(/*is_last=*/i + 1 == parts.size());
    const Stopwatch forward_watch;
    torch::Tensor loss;
    {
      const std::unique_ptr<AutocastScope> scope = precision_.autocast();
      loss = module_.training_step(parts[i].batch);
    }
    const double value = loss.item<double>();
    window_.forward_s += forward_watch.seconds();
    // With several processes all of them come to the end of the step, where they learn of it together.
    if (!std::isfinite(value) && topology_.is_alone) {
      if (optimizer_->may_skip()) return value;
      stop_at_non_finite(value);
    }
    mean_loss += value * parts[i].share;
    if (!step_observers_.empty()) {
      notify_step(keys::kBackward, {{keys::kGlobalStep, state_.global_step},
                                    {"micro_batch", static_cast<int64_t>(i) + 1},
                                    {"loss", json_number(value)}});
    }
    const Stopwatch backward_watch;
    backward(loss, parts[i].share);
    window_.backward_s += backward_watch.seconds();
  }
  return mean_loss;
}

void Engine::backward(const torch::Tensor& loss, double share) {
  const double factor = share * optimizer_->loss_scale();
  // The product is taken in float32: a scaled loss is what float16 cannot hold.
  adapter().backward(module_,
                     factor == 1 ? loss : loss.to(at::promoteTypes(loss.scalar_type(), torch::kFloat)) * factor);
}

void Engine::stop_at_non_finite(double loss) const {
  throw NonFiniteError(
      fmt::format("the loss is {} at {}, learning rate {:g}; training stopped before this update. A smaller "
                  "learning rate or Optimizer.grad_clip usually helps",
                  loss, where(), window_.learning_rate));
}

void Engine::stop_at_spike(double loss) const {
  const std::optional<double> limit = spike_guard_->limit(state_.recent_losses);
  if (!limit || loss <= *limit) return;
  throw LossSpikeError(fmt::format(
      "the loss jumped to {:g} at step {} (epoch {}, batch {}): above Engine.spike.factor {:g} times {:g}, the median "
      "of the last {} steps; training stopped before this update",
      loss, state_.global_step + 1, state_.epoch, state_.batch + 1, options_.spike->factor,
      *limit / options_.spike->factor, options_.spike->window));
}

void Engine::after_step(Loader& train, Loader* eval) {
  if (writer_) announce(writer_->finished());
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
  const double samples_per_s = static_cast<double>(window_.samples) / window_.total_s;
  // After the last batch of an epoch the position is already that of the next; the log is of the step that was made.
  const bool epoch_over = state_.batch == 0;
  const TrainLog log{.epoch = epoch_over ? state_.epoch - 1 : state_.epoch,
                     .num_epochs = options_.num_epochs,
                     .batch = epoch_over ? train.num_batches() : state_.batch,
                     .num_batches = train.num_batches(),
                     .global_step = state_.global_step,
                     .loss = state_.window_loss / static_cast<double>(state_.window_steps),
                     .learning_rate = window_.learning_rate,
                     .batch_cost_s = window_.total_s / steps,
                     .samples_per_s = samples_per_s,
                     .units_per_s = samples_per_s * module_.units_per_sample(),
                     .mfu = mfu(window_.samples, window_.total_s),
                     .peak_memory_bytes = peak_resident_bytes(),
                     .data_s = window_.data_s / steps,
                     .forward_s = window_.forward_s / steps,
                     .backward_s = window_.backward_s / steps,
                     .optimizer_s = window_.optimizer_s / steps,
                     .comm_s = topology_.is_alone ? std::nullopt : std::optional(window_.comm_s / steps),
                     .loss_scale = optimizer_->loss_scale(),
                     .found_inf = state_.window_found_inf};
  module_.training_step_end(log);
  for (EngineObserver* observer : services_.observers) observer->on_train_log(log);
  window_ = {};
  state_.window_loss = 0;
  state_.window_steps = 0;
  state_.window_found_inf = 0;
}

void Engine::end_epoch(Loader* eval, double seconds) {
  module_.training_epoch_end(state_.epoch, seconds);
  notify(keys::kEpochEnd, {{"epoch", state_.epoch}, {keys::kGlobalStep, state_.global_step}});
  ++state_.epoch;
  state_.batch = 0;
  state_.consumed_samples = 0;
  const bool epoch_mode = options_.run_mode == EngineOptions::RunMode::Epoch;
  if (eval && epoch_mode && options_.eval_freq && state_.epoch % *options_.eval_freq == 0) evaluate_and_judge(*eval);
  if (options_.save_epoch && state_.epoch % *options_.save_epoch == 0) save_if_new();
  stop_if_asked();
}

}  // namespace assay
