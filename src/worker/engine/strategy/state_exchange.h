// Where the whole of a tensor is that is spread over the processes of a job: gathered for a checkpoint, scattered from
// one. Knows no files. The defaults are those of one process.
//
// Every process of a job makes the same calls in the same order.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "engine/module.h"

namespace assay {

inline constexpr char kRandomState[] = "random.cpu";  // beside the optimizer's tensors, of the first process

class StateExchange {
 public:
  virtual ~StateExchange() = default;

  // --- whole tensors by name, on the writer; nothing on the others
  virtual NamedTensors gather_weights(const Module& module);
  virtual NamedTensors gather_state(const NamedTensors& mine) { return mine; }  // of optimizer, scaler and averages
  virtual NamedTensors gather_random(const torch::Tensor& mine);
  virtual Json placement() const { return nullptr; }  // which process has which part; null: one has all

  // --- the other way round: what the writer has read, as parts for every process
  virtual void broadcast(std::string& /*bytes*/) {}
  virtual TensorsByName scatter_weights(TensorsByName whole) { return whole; }
  virtual TensorsByName scatter_state(TensorsByName whole) { return whole; }
  // Of a checkpoint of `step`: nullopt when it holds none for this process.
  virtual std::optional<torch::Tensor> scatter_random(const TensorsByName& whole, int64_t step);
  // After the weights were changed by something else than an update: a checkpoint was loaded.
  virtual void weights_changed() {}
};

}  // namespace assay
