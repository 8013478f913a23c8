// Loss scaling: float16 cannot hold gradients below 6e-8, so the loss is multiplied before the backward pass and the
// gradients are divided by the same number before the update. A scale that is too large overflows; then the step is
// skipped and a dynamic scale becomes smaller.
#pragma once

#include "engine/optimizer/optimizer.h"

namespace assay {

// A vendor may replace it (Adapter::create_grad_scaler) by deriving from it.
class LossScaler {
 public:
  struct Options {
    double initial = 32768;  // FleetX's default
    bool dynamic = true;
    double growth = 2;     // factor after growth_interval steps without overflow
    double backoff = 0.5;  // factor after backoff_interval overflows in a row
    int64_t growth_interval = 1000;
    int64_t backoff_interval = 1;
  };
  // Throws ConfigError for factors on the wrong side of 1.
  explicit LossScaler(const Options& options);
  virtual ~LossScaler() = default;

  virtual double scale() const { return scale_; }
  // After every step. Throws NonFiniteError when there is nothing left to try: a dynamic scale is at 1 already, or a
  // static one has overflowed 16 times in a row.
  virtual void update(bool found_inf);

  // "scaler.*". Loading throws DataError.
  virtual NamedTensors state() const;
  virtual void load_state(const std::map<std::string, torch::Tensor>& state);

 private:
  Options options_;
  double scale_;
  int64_t good_steps_ = 0;  // since the last change or overflow
  int64_t bad_steps_ = 0;   // overflows in a row
};

}  // namespace assay
