// The parts of the engine that measure a model: evaluation, prediction, and what follows from a metric.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "engine/loop/engine.h"
#include "record/keys.h"

namespace assay {

void Engine::evaluate_and_judge(Loader& eval) {
  const Stopwatch watch;
  const Evaluation evaluation = evaluate(eval, options_.eval_iters);
  eval_s_ += watch.seconds();
  state_.evaluated_at_step = state_.global_step;
  state_.eval_loss = evaluation.metrics.at("loss");
  state_.metric.reset();
  if (services_.target) judge(evaluation);
  for (EngineObserver* observer : services_.observers) observer->on_evaluation(evaluation, state_);
  notify(keys::kEvaluate, {{keys::kGlobalStep, evaluation.global_step},
                           {"epoch", evaluation.epoch},
                           {"metric", services_.target ? Json(services_.target->metric) : Json(nullptr)},
                           {"value", state_.metric ? json_number(*state_.metric) : Json(nullptr)},
                           {keys::kConverged, state_.converged}});
  if (services_.target && update_best(*state_.metric) && !services_.checkpoint_folder.empty()) save();
}

void Engine::judge(const Evaluation& evaluation) {
  const Target& target = *services_.target;
  const auto found = evaluation.metrics.find(target.metric);
  if (found == evaluation.metrics.end()) {
    throw ConfigError(fmt::format("target.metric '{}': this model does not measure this metric", target.metric));
  }
  state_.metric = found->second;
  const bool maximize = target.goal == Goal::Maximize;
  if (!state_.best_metric || (maximize ? *state_.metric > *state_.best_metric : *state_.metric < *state_.best_metric)) {
    state_.best_metric = state_.metric;
    state_.best_epoch = evaluation.epoch;
    state_.evaluations_without_better = 0;
  } else {
    ++state_.evaluations_without_better;
  }
  if (target.reached_by(*state_.metric)) {
    if (!state_.converged) state_.converged_at_step = state_.global_step;
    state_.converged = true;
    ended_early_ = ended_early_ || options_.stop_at_target;
  }
  if (options_.early_stop && state_.evaluations_without_better >= *options_.early_stop) {
    ended_early_ = true;
    notify(keys::kEarlyStop, {{keys::kGlobalStep, state_.global_step},
                              {"evaluations", state_.evaluations_without_better},
                              {"best", json_number(*state_.best_metric)}});
  }
}

// Enters this moment into the list of the best evaluations, if it belongs there. Of equal ones the earlier is kept.
bool Engine::update_best(double value) {
  if (!options_.keep_best || value != value) return false;
  const bool maximize = services_.target->goal == Goal::Maximize;
  const auto position = std::find_if(state_.best.begin(), state_.best.end(), [&](const BestEvaluation& other) {
    return maximize ? value > other.value : value < other.value;
  });
  if (position - state_.best.begin() >= *options_.keep_best) return false;
  state_.best.insert(position,
                     {.checkpoint = checkpoint_name(state_), .global_step = state_.global_step, .value = value});
  if (static_cast<int64_t>(state_.best.size()) > *options_.keep_best) state_.best.pop_back();
  return true;
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
          .num_units = static_cast<double>(sums.num_samples) * module_.units_per_sample(),
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
                         .num_units = static_cast<double>(sums.num_samples) * module_.units_per_sample(),
                         .seconds = watch.seconds(),
                         .metrics = module_.validation_epoch_end(state_.epoch, sums)}};
}

EvalSums Engine::run_batches(Loader& loader, std::optional<int64_t> max_batches, bool test,
                             const std::function<void(const Batch&, const EvalStep&)>& on_step) {
  const torch::NoGradGuard no_grad;
  const std::unique_ptr<WeightSwap> average = optimizer_->use_average();
  module_.model().eval();
  const int64_t num_batches = max_batches ? std::min(*max_batches, loader.num_batches()) : loader.num_batches();
  EvalCollector collected;
  EvaluationExchange& exchange = strategy_.evaluation();
  exchange.begin_evaluation();
  loader.start(0);
  for (int64_t i = 0; i < num_batches; ++i) {
    const Stopwatch watch;
    const Batch batch = precision_.convert(module_.pretreating_batch(*loader.next()));
    const std::optional<EvalStep> step = exchange.evaluate(module_, batch, test);
    if (!step || batch.num_samples == 0) continue;  // measured elsewhere, or a sample that does not count
    collected.add(*step);
    if (on_step) on_step(batch, *step);
    const EvalLog log{.stage = test ? "test" : "eval",
                      .epoch = state_.epoch,
                      .batch = i + 1,
                      .num_batches = num_batches,
                      .loss = step->loss.item<double>(),
                      .batch_cost_s = watch.seconds()};
    if (log.batch == num_batches || log.batch % options_.logging_freq == 0) {
      test ? module_.test_step_end(log) : module_.validation_step_end(log);
    }
  }
  exchange.end_evaluation();
  return exchange.merge(collected.sums());
}

void Engine::export_model(const std::function<void(Module&)>& exporter) {
  const torch::NoGradGuard no_grad;
  module_.model().eval();
  exporter(module_);
}

}  // namespace assay
