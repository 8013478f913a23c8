#include "engine/module/model_definition.h"

#include "base/error.h"

namespace assay {

void ModelDefinition::init() {
  ASSAY_CHECK(!model_, "init() called twice");
  model_ = get_model();
  loss_fn_ = get_loss_fn();
}

Network& ModelDefinition::model() const {
  ASSAY_CHECK(model_, "init() was not called");
  return *model_;
}

ParameterSet ModelDefinition::trained_parameters() const {
  return trained_parameters_ ? *trained_parameters_ : whole_parameters(trainable_parameters(model()));
}

}  // namespace assay
