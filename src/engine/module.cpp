#include "engine/module.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/error.h"
#include "engine/adapter.h"
#include "engine/fused_optimizer.h"

namespace assay {

namespace {

// A line at once and now: whoever watches the log sees where training is, and a kill loses nothing that was said.
void say(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

TensorList inputs_of(const Batch& batch) {
  ASSAY_CHECK(batch.tensors.size() >= 2, "a batch needs inputs and a label");
  return {batch.tensors.begin(), batch.tensors.end() - 1};
}

const torch::Tensor& label_of(const Batch& batch) { return batch.tensors.back(); }

TensorList Network::run_segment(int64_t index, const TensorList& /*stream*/, const TensorList& inputs) {
  ASSAY_CHECK(index == 0 && num_segments() == 1, "a network with segments must say how to run one");
  return {forward(inputs)};
}

std::vector<std::string> Network::segment_parameters(int64_t /*index*/) const {
  std::vector<std::string> names;
  for (const auto& item : named_parameters()) names.push_back(item.key());
  return names;
}

TensorList Network::run_one(int64_t index, const TensorList& stream, const TensorList& inputs) {
  return runner_ ? runner_(index, stream, inputs) : run_segment(index, stream, inputs);
}

TensorList Network::run(const TensorList& inputs) {
  TensorList stream;
  for (int64_t i = 0; i < num_segments(); ++i) stream = run_one(i, stream, inputs);
  return stream;
}

void Module::init() {
  ASSAY_CHECK(!model_, "init() called twice");
  model_ = get_model();
  loss_fn_ = get_loss_fn();
}

Network& Module::model() const {
  ASSAY_CHECK(model_, "init() was not called");
  return *model_;
}

// A module may replace forward(), which a network of one segment leaves room for.
torch::Tensor Module::training_step(const Batch& batch) {
  const TensorList inputs = inputs_of(batch);
  return training_loss(model().num_segments() == 1 ? TensorList{forward(inputs)} : model().run(inputs), batch);
}

torch::Tensor Module::training_loss(const TensorList& stream, const Batch& batch) {
  return loss_fn_(model().output(stream), label_of(batch));
}

// The format is FleetX's, since its users' scripts read these lines.
void Module::training_step_end(const TrainLog& log) {
  const double rate = log.batch_cost_s > 0 ? 1 / log.batch_cost_s : 0;
  say(fmt::format(
      "[train] epoch: [{}/{}], batch: [{}/{}], loss: {:.9f}, avg_batch_cost: {:.5f} sec, speed: {:.2f} "
      "step/s, ips_total: {:.0f} {}/s, ips: {:.0f} {}/s, loss_scale: {:.9f}, learning rate: {:.5e}, "
      "found_inf: {}\n",
      log.epoch, log.num_epochs, log.batch, log.num_batches, log.loss, log.batch_cost_s, rate, log.units_per_s,
      sample_unit(), log.units_per_s, sample_unit(), log.loss_scale, log.learning_rate, log.found_inf));
}

void EvalCollector::add(const EvalStep& step) {
  sums_.loss += step.loss.item<double>() * static_cast<double>(step.num_samples);
  sums_.num_samples += step.num_samples;
  for (const auto& [name, value] : step.sums) sums_.sums[name] += value;
  for (const auto& [name, value] : step.values) values_[name].push_back(value);
}

EvalSums EvalCollector::sums() const {
  EvalSums all = sums_;
  for (const auto& [name, parts] : values_) all.values[name] = torch::cat(parts);
  return all;
}

EvalStep Module::validation_step(const Batch& batch) {
  if (model().num_segments() > 1) return measure_stream(model().run(inputs_of(batch)), batch);
  return measure_output(forward(inputs_of(batch)), batch);
}

EvalStep Module::measure_stream(const TensorList& stream, const Batch& batch) {
  return measure_output(model().output(stream), batch);
}

EvalStep Module::measure_output(const torch::Tensor& output, const Batch& batch) {
  EvalStep step;
  step.output = output;
  step.loss = loss_fn_(output, label_of(batch));
  step.num_samples = batch.num_samples;
  return step;
}

void Module::validation_step_end(const EvalLog& log) {
  const double rate = log.batch_cost_s > 0 ? 1 / log.batch_cost_s : 0;
  say(fmt::format("[{}] epoch: {}, batch: {}/{}, loss: {:.9f}, avg_eval_cost: {:.5f} sec, speed: {:.2f} step/s\n",
                  log.stage, log.epoch, log.batch, log.num_batches, log.loss, log.batch_cost_s, rate));
}

MetricValues Module::validation_epoch_end(int64_t /*epoch*/, const EvalSums& sums) {
  return {{"loss", sums.loss / static_cast<double>(sums.num_samples)}};
}

std::unique_ptr<Optimizer> Module::configure_optimizers(const Optimizer::Options& options) {
  return std::make_unique<FusedOptimizer>(trained_parameters(), options);
}

ParameterSet Module::trained_parameters() const {
  return trained_parameters_ ? *trained_parameters_ : whole_parameters(trainable_parameters(model()));
}

}  // namespace assay
