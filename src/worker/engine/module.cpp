#include "engine/module.h"

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "engine/optimizer/fused_optimizer.h"

namespace assay {

namespace {

// A line at once and now: whoever watches the log sees where training is, and a kill loses nothing that was printed.
void print_now(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

// A module may replace forward(), which a network of one segment leaves room for.
torch::Tensor Module::training_step(const Batch& batch) {
  const TensorList inputs = inputs_of(batch);
  return training_loss(model().num_segments() == 1 ? TensorList{forward(inputs)} : model().run(inputs), batch);
}

// The format is FleetX's, since its users' scripts read these lines.
void Module::training_step_end(const TrainLog& log) {
  const double rate = log.batch_cost_s > 0 ? 1 / log.batch_cost_s : 0;
  print_now(fmt::format(
      "[train] epoch: [{}/{}], batch: [{}/{}], loss: {:.9f}, avg_batch_cost: {:.5f} sec, speed: {:.2f} "
      "step/s, ips_total: {:.0f} {}/s, ips: {:.0f} {}/s, loss_scale: {:.9f}, learning rate: {:.5e}, "
      "found_inf: {}\n",
      log.epoch, log.num_epochs, log.batch, log.num_batches, log.loss, log.batch_cost_s, rate, log.units_per_s,
      sample_unit(), log.units_per_s, sample_unit(), log.loss_scale, log.learning_rate, log.found_inf));
}

EvalStep Module::validation_step(const Batch& batch) {
  if (model().num_segments() > 1) return measure_stream(model().run(inputs_of(batch)), batch);
  return measure_output(forward(inputs_of(batch)), batch);
}

void Module::validation_step_end(const EvalLog& log) {
  const double rate = log.batch_cost_s > 0 ? 1 / log.batch_cost_s : 0;
  print_now(fmt::format("[{}] epoch: {}, batch: {}/{}, loss: {:.9f}, avg_eval_cost: {:.5f} sec, speed: {:.2f} step/s\n",
                        log.stage, log.epoch, log.batch, log.num_batches, log.loss, log.batch_cost_s, rate));
}

std::unique_ptr<Optimizer> Module::configure_optimizers(const Optimizer::Options& options) {
  return std::make_unique<FusedOptimizer>(trained_parameters(), options);
}

}  // namespace assay
