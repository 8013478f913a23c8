// evaluate, export and infer: what happens to weights after training.
#include <fmt/format.h>

#include "commands.h"
#include "deploy/export.h"
#include "deploy/predictor.h"
#include "device/cpu.h"
#include "engine/loop/engine.h"
#include "engine/loop/record_observer.h"
#include "nn/transformer_parts.h"
#include "record/keys.h"

namespace assay {

namespace {

Json measured(const std::optional<int64_t>& value) { return value ? Json(*value) : Json(nullptr); }

constexpr double kMilliseconds = 1e3;

// The metric of the case's target; nullopt when the model does not measure it.
std::optional<double> metric_of(const Job& job, const MetricValues& metrics) {
  const auto found = metrics.find(job.config().target.metric);
  return found == metrics.end() ? std::nullopt : std::optional(found->second);
}
Json value_of(const std::optional<double>& metric) { return metric ? json_number(*metric) : Json(nullptr); }
Json converged(const Job& job, const std::optional<double>& metric) {
  return metric ? Json(job.config().target.reached_by(*metric)) : Json(nullptr);
}

}  // namespace

void run_evaluate(Job& job) {
  std::string weights_hash;
  const std::unique_ptr<Module> module = job.load_module(weights_hash);
  const std::unique_ptr<Loader> data = job.need_loader("Test");
  EngineServices services;
  services.adapter = &job.adapter();
  Engine engine(*module, job.options(), services);
  const double init_s = job.started().seconds();
  write_event(job.records(), keys::kInitEnd);

  const Predictions predictions = engine.predict(*data, job.options().test_iters);
  const Evaluation& measured_now = predictions.evaluation;
  write_predictions(job.arguments().output / "predictions.safetensors", predictions.outputs, predictions.labels,
                    job.config().case_name, weights_hash);
  const std::optional<double> metric = metric_of(job, measured_now.metrics);
  job.write_result({{keys::kE2eTime, job.started().seconds()},
                    {keys::kInitTime, init_s},
                    {keys::kFinalAccuracy, value_of(metric)},
                    {keys::kConverged, converged(job, metric)},
                    {keys::kTarget, to_json(job.config().target)},
                    {keys::kFinalLoss, json_number(measured_now.metrics.at("loss"))},
                    {keys::kNumSamples, measured_now.num_samples},
                    {keys::kThroughputWhole, measured_now.num_units / measured_now.seconds},
                    {keys::kThroughputUnit, module->sample_unit() + "/s"},
                    {keys::kPeakMemory, measured(peak_resident_bytes())},
                    {keys::kSeed, job.options().seed},
                    {keys::kHashes, job.hashes(*data, weights_hash)}});
}

void run_export(Job& job) {
  std::string weights_hash;
  const std::unique_ptr<Module> module = job.load_module(weights_hash);
  write_event(job.records(), keys::kInitEnd);
  EngineServices services;
  services.adapter = &job.adapter();
  Engine engine(*module, job.options(), services);
  ExportInfo info;
  engine.export_model([&](Module& trained) {
    info = export_torchscript(trained, job.arguments().output / "model.pt", job.config().case_name);
  });
  fmt::print("[export] {} written, sha256 {}\n", (job.arguments().output / "model.pt").string(), info.file_hash);
  write_event(job.records(), keys::kFinished, to_json(info));
}

void run_infer(Job& job) {
  Predictor predictor(job.arguments().model);
  const std::unique_ptr<Loader> data = job.need_loader("Test");
  const double init_s = job.started().seconds();
  write_event(job.records(), keys::kInitEnd, to_json(predictor.info()));

  std::unique_ptr<Module> judge;
  {
    const UndrawnWeights only_the_metrics;
    judge = job.make_module();
  }
  const InferenceResult r = run_inference(predictor, *judge, *data, job.options().test_iters);
  const std::optional<double> metric = metric_of(job, r.metrics);
  write_predictions(job.arguments().output / "predictions.safetensors", r.outputs, r.labels, job.config().case_name,
                    predictor.info().weights_hash);
  Json latency = {{"p50", nullptr}, {"p90", nullptr}, {"p99", nullptr}};
  if (!r.latencies_s.empty()) {
    latency = {{"p50", percentile(r.latencies_s, 0.50) * kMilliseconds},
               {"p90", percentile(r.latencies_s, 0.90) * kMilliseconds},
               {"p99", percentile(r.latencies_s, 0.99) * kMilliseconds}};
  }
  const double units = static_cast<double>(r.num_samples) * predictor.info().units_per_sample;
  fmt::print("[infer] {}: {}, samples: {}, throughput: {:.0f} {}/s\n", job.config().target.metric,
             metric ? fmt::format("{:.4f}", *metric) : "not measured", r.num_samples, units / r.compute_s,
             predictor.info().sample_unit);
  job.write_result({{keys::kE2eTime, job.started().seconds()},
                    {keys::kInitTime, init_s},
                    {keys::kFinalAccuracy, value_of(metric)},
                    {keys::kConverged, converged(job, metric)},
                    {keys::kTarget, to_json(job.config().target)},
                    {keys::kNumSamples, r.num_samples},
                    {keys::kThroughputWhole, units / r.whole_s},
                    {keys::kThroughputCore, units / r.compute_s},
                    {keys::kThroughputUnit, predictor.info().sample_unit + "/s"},
                    {"latency_ms", latency},
                    {"latency_batch_size", r.batch_size},
                    {keys::kPeakMemory, measured(peak_resident_bytes())},
                    {keys::kSeed, job.options().seed},
                    {keys::kHashes, job.hashes(*data, predictor.info().weights_hash)}});
}

}  // namespace assay
