// A part of a run's state that checkpoints hold and the engine knows nothing of: a loss scaler, an average of weights.
#pragma once

#include <map>
#include <string>

#include "base/json.h"
#include "engine/optimizer/optimizer.h"

namespace assay {

class StatePart {
 public:
  virtual ~StatePart() = default;
  virtual std::string name() const = 0;  // a word, unique among the parts of a run
  virtual Json values() const { return Json::object(); }
  virtual NamedTensors tensors() const { return {}; }
  // Gets what values() and tensors() were when the checkpoint was made. Throws DataError when it cannot use them.
  virtual void load(const Json& values, const std::map<std::string, torch::Tensor>& tensors) = 0;
};

}  // namespace assay
