#include "engine/loop/event_handler.h"

#include "record/keys.h"

namespace assay {

namespace {

struct EventMethod {
  std::string_view name;
  void (EventHandler::*call)(const Json&);
};

// Those of every step first: they are looked up most often.
constexpr EventMethod kEventMethods[] = {
    {keys::kStepBegin, &EventHandler::on_step_begin},
    {keys::kBackward, &EventHandler::on_backward},
    {keys::kStepEnd, &EventHandler::on_step_end},
    {keys::kInitStart, &EventHandler::on_init_start},
    {keys::kConvertModel, &EventHandler::on_convert_model},
    {keys::kCreateOptimizer, &EventHandler::on_create_optimizer},
    {keys::kModelToFp16, &EventHandler::on_model_to_fp16},
    {keys::kModelToDdp, &EventHandler::on_model_to_ddp},
    {keys::kSubmitInfo, &EventHandler::on_submit_info},
    {keys::kInitEnd, &EventHandler::on_init_end},
    {keys::kLaunchTraining, &EventHandler::on_launch_training},
    {keys::kTrainStart, &EventHandler::on_train_start},
    {keys::kEpochBegin, &EventHandler::on_epoch_begin},
    {keys::kInitEvaluation, &EventHandler::on_init_evaluation},
    {keys::kEvaluate, &EventHandler::on_evaluate},
    {keys::kEpochEnd, &EventHandler::on_epoch_end},
    {keys::kTrainEnd, &EventHandler::on_train_end},
    {keys::kFinished, &EventHandler::on_finished},
};

}  // namespace

void EventHandler::on_event(std::string_view name, const Json& data) {
  for (const EventMethod& method : kEventMethods) {
    if (method.name == name) return (this->*method.call)(data);
  }
  on_other(name, data);
}

}  // namespace assay
