// What the processes of a job exchange within a training step. The defaults are those of one process.
//
// Every process of a job makes the same calls in the same order.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/strategy/micro_batch.h"

namespace assay {

// What all processes agree on at the end of a step.
struct StepAgreement {
  double loss = 0;    // of the step, over all processes; not finite when it is so anywhere
  bool stop = false;  // a process was asked to stop
};

class StepExchange {
 public:
  virtual ~StepExchange() = default;
  virtual void begin_step(int64_t /*step*/) {}  // its number, for messages
  virtual double sum_over_replicas(double mine) { return mine; }
  // Before level O2 makes copies of the weights: those that these parts read are brought up to date.
  virtual void bring_weights(const std::vector<MicroBatch>& /*parts*/) {}
  // Null: the engine runs micro-batches one after the other, and calls before_micro_batch() for each.
  virtual MicroBatchSchedule* schedule() { return nullptr; }
  virtual void before_micro_batch(bool /*is_last*/) {}
  // Returns when the gradients of what this process updates are those of the whole batch.
  virtual void finish_gradients() {}
  virtual StepAgreement agree(const StepAgreement& mine) { return mine; }
  virtual void after_update() {}
  virtual double comm_seconds() const { return 0; }  // waited for other processes since the last call of begin_step()
};

}  // namespace assay
