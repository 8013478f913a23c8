// Writes what the engine does as records, with the metric names that tcap_dllogger's users know.
#pragma once

#include <string>

#include "config/case.h"
#include "engine/loop/observer.h"
#include "record/stream.h"

namespace assay {

class RecordObserver final : public EngineObserver {
 public:
  // Describes every metric first. The writer must outlive this.
  RecordObserver(RecordWriter& writer, const Target& target, const std::string& sample_unit);

  void on_event(std::string_view name, const Json& data) override;
  void on_train_log(const TrainLog& log) override;
  void on_evaluation(const Evaluation& evaluation, const TrainingState& state) override;

 private:
  void describe(const char* metric, Json data);
  RecordWriter& writer_;
};

// One event, for places that have no engine.
void write_event(RecordWriter& writer, std::string_view name, Json data = Json::object());

}  // namespace assay
