// The learning rate as a function of what was done before an update: no state, so resuming needs nothing but the
// position.
//
// t counts what was done before (updates, or samples), n is what this update adds (1, or its samples), so that counting
// samples gives the rates of counting steps when all batches are equal. W = warmup_steps, T = decay_steps,
// r = learning_rate, m = min_lr.
//   warm-up    t < W:  r * (t + n) / W, at most r  (every schedule except one_cycle)
//   constant           r
//   cosine             m + (r - m) * (1 + cos(pi * p)) / 2      p = (t - W) / (T - W), at most 1
//   linear             r + (m - r) * p
//   polynomial         m + (r - m) * (1 - p) ^ power
//   multistep          r * gamma ^ (number of milestones <= t)
//   one_cycle          cosine from r / div_factor up to r over t = 0 .. pct_start * T - n, then down to
//                      r / div_factor / final_div_factor at t = T - n
// The first update never has rate zero.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay {

class Schedule {
 public:
  struct Options {
    std::string name = "constant";  // one of names()
    double learning_rate = 0.001;
    int64_t warmup_steps = 0;
    double min_lr = 0;
    int64_t decay_steps = 1;  // until the last rate; usually all steps of the run
    std::vector<int64_t> milestones;
    double gamma = 0.1;
    double power = 1;
    double pct_start = 0.3;
    double div_factor = 25;
    double final_div_factor = 1e4;
  };
  // Throws ConfigError for an unknown name or values that make no schedule.
  explicit Schedule(const Options& options);
  // Of the update after `position.done`.
  struct Position {
    int64_t done = 0;
    int64_t next = 1;
  };
  double rate(const Position& position) const;
  static const std::vector<std::string>& names();

 private:
  double one_cycle(const Position& position) const;
  Options options_;
};

}  // namespace assay
