#include "engine/loop/record_observer.h"

#include "record/keys.h"

namespace assay {

namespace {

Json number_or_null(const std::optional<double>& value) { return value ? json_number(*value) : Json(nullptr); }
Json count_or_null(const std::optional<int64_t>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

void write_event(RecordWriter& writer, std::string_view name, Json data) {
  Record record;
  record.type = Record::Type::Event;
  record.name = name;
  record.data = std::move(data);
  writer.write(std::move(record));
}

RecordObserver::RecordObserver(RecordWriter& writer, const Target& target, const std::string& sample_unit)
    : writer_(writer) {
  const std::string rate = sample_unit + "/s";
  const auto metric = [](const std::string& unit, const char* format, const char* goal, const char* stage) {
    return Json{{"unit", unit}, {"format", format}, {"GOAL", goal}, {"STAGE", stage}};
  };
  describe(keys::kTrainLoss, metric("", ":.6f", "MINIMIZE", "TRAIN"));
  describe(keys::kTrainIps, metric(rate, ":.1f", "MAXIMIZE", "TRAIN"));
  describe(keys::kTrainLr, Json{{"unit", ""}, {"format", ":.5e"}, {"STAGE", "TRAIN"}});
  describe(keys::kTrainLossScale, Json{{"unit", ""}, {"format", ":.0f"}, {"STAGE", "TRAIN"}});
  describe(keys::kTrainFoundInf, metric("steps", ":.0f", "MINIMIZE", "TRAIN"));
  for (const char* name : {keys::kTrainDataTime, keys::kTrainForwardTime, keys::kTrainBackwardTime,
                           keys::kTrainOptimizerTime, keys::kTrainCommTime, keys::kTrainComputeTime}) {
    describe(name, metric("s", ":.6f", "MINIMIZE", "TRAIN"));
  }
  describe(keys::kTrainMfu, metric("", ":.4f", "MAXIMIZE", "TRAIN"));
  describe(keys::kTrainPeakMemory, metric("B", ":d", "MINIMIZE", "TRAIN"));
  describe(keys::kValLoss, metric("", ":.6f", "MINIMIZE", "VALID"));
  describe(keys::kValIps, metric(rate, ":.1f", "MAXIMIZE", "VALID"));
  Json target_metric = metric("", ":.6f", target.goal == Goal::Maximize ? "MAXIMIZE" : "MINIMIZE", "VALID");
  target_metric["name"] = target.metric;
  describe(keys::kValMetric, target_metric);
  describe(keys::kSummaryBestMetric, target_metric);
}

void RecordObserver::describe(const char* metric, Json data) {
  Record record;
  record.type = Record::Type::Metadata;
  record.name = metric;
  record.data = std::move(data);
  writer_.write(std::move(record));
}

void RecordObserver::on_event(std::string_view name, const Json& data) {
  // Where the process begins and ends is recorded by whoever runs it, whatever command it is.
  if (name != keys::kInitStart && name != keys::kFinished) write_event(writer_, name, data);
}

void RecordObserver::on_train_log(const TrainLog& log) {
  Record record;
  record.type = Record::Type::Metrics;
  record.step = {log.epoch, log.batch};
  record.data = {{keys::kGlobalStep, log.global_step},
                 {keys::kTrainLoss, json_number(log.loss)},
                 {keys::kTrainIps, json_number(log.units_per_s)},
                 {keys::kTrainLr, log.learning_rate},
                 {keys::kTrainLossScale, log.loss_scale},
                 {keys::kTrainFoundInf, log.found_inf},
                 {keys::kTrainDataTime, log.data_s},
                 {keys::kTrainForwardTime, log.forward_s},
                 {keys::kTrainBackwardTime, log.backward_s},
                 {keys::kTrainOptimizerTime, log.optimizer_s},
                 {keys::kTrainComputeTime, log.forward_s + log.backward_s + log.optimizer_s},
                 {keys::kTrainMfu, number_or_null(log.mfu)},
                 {keys::kTrainPeakMemory, count_or_null(log.peak_memory_bytes)}};
  if (log.comm_s) record.data[keys::kTrainCommTime] = *log.comm_s;
  writer_.write(std::move(record));
}

void RecordObserver::on_evaluation(const Evaluation& evaluation, const TrainingState& state) {
  Record record;
  record.type = Record::Type::Metrics;
  record.step = {evaluation.epoch};
  record.data = {{keys::kGlobalStep, evaluation.global_step},
                 {keys::kValLoss, number_or_null(state.eval_loss)},
                 {keys::kValIps, json_number(evaluation.num_units / evaluation.seconds)},
                 {keys::kValMetric, number_or_null(state.metric)},
                 {keys::kSummaryEpoch, evaluation.epoch},
                 {keys::kSummaryBestEpoch, count_or_null(state.best_epoch)},
                 {keys::kSummaryBestMetric, number_or_null(state.best_metric)}};
  writer_.write(std::move(record));
}

}  // namespace assay
