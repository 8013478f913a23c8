// The learning rate as a function of the update's number: no state, so resuming at a step needs nothing but the step.
//
// t = 0, 1, ... numbers the optimizer updates, W = warmup_steps, T = decay_steps, r = learning_rate, m = min_lr.
//   warm-up    t < W:  r * (t + 1) / W            (every schedule except one_cycle)
//   constant           r
//   cosine             m + (r - m) * (1 + cos(pi * p)) / 2      p = (t - W) / (T - W), at most 1
//   linear             r + (m - r) * p
//   multistep          r * gamma ^ (number of milestones <= t)
//   one_cycle          cosine from r / div_factor up to r over t = 0 .. pct_start * T - 1, then down to
//                      r / div_factor / final_div_factor at t = T - 1
// The first update never has rate zero.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay {

class Schedule {
 public:
  struct Options {
    std::string name = "constant";  // constant, cosine, linear, multistep, one_cycle
    double learning_rate = 0.001;
    int64_t warmup_steps = 0;
    double min_lr = 0;
    int64_t decay_steps = 1;  // until the last rate; usually all steps of the run
    std::vector<int64_t> milestones;
    double gamma = 0.1;
    double pct_start = 0.3;
    double div_factor = 25;
    double final_div_factor = 1e4;
  };
  // Throws ConfigError for an unknown name or values that make no schedule.
  explicit Schedule(const Options& options);
  double rate(int64_t update) const;
  static const std::vector<std::string>& names();

 private:
  double one_cycle(int64_t update) const;
  Options options_;
};

}  // namespace assay
