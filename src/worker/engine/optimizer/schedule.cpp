#include "engine/optimizer/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/text.h"

namespace assay {

namespace {

// Half a cosine wave from `from` (share 0) to `to` (share 1).
double cosine_between(double from, double to, double share) {
  return to + (from - to) / 2.0 * (1.0 + std::cos(std::numbers::pi * share));
}

}  // namespace

const std::vector<std::string>& Schedule::names() {
  static const std::vector<std::string> kNames = {"constant",   "cosine",    "linear",
                                                  "polynomial", "multistep", "one_cycle"};
  return kNames;
}

Schedule::Schedule(const Options& options) : options_(options) {
  const auto& known = names();
  if (std::find(known.begin(), known.end(), options.name) == known.end()) {
    throw ConfigError(fmt::format("Optimizer.lr.name '{}': unknown schedule{}; known are {}", options.name,
                                  did_you_mean(options.name, known), join(known, ", ")));
  }
  if (!(options.learning_rate > 0)) {
    throw ConfigError(fmt::format("Optimizer.lr.learning_rate {}: must be positive", options.learning_rate));
  }
  if (options.decay_steps < 1) {
    throw ConfigError(fmt::format("Optimizer.lr.decay_steps {}: must be at least 1", options.decay_steps));
  }
  if (!(options.power > 0)) throw ConfigError(fmt::format("Optimizer.lr.power {}: must be positive", options.power));
  const bool warms_up = options.name != "one_cycle";
  if (options.warmup_steps < 0 || (!warms_up && options.warmup_steps > 0)) {
    throw ConfigError(fmt::format("Optimizer.lr.warmup_steps {}: {}", options.warmup_steps,
                                  warms_up ? "must not be negative" : "one_cycle has its own rise, see pct_start"));
  }
}

double Schedule::rate(const Position& position) const {
  const Options& o = options_;
  if (o.name == "one_cycle") return one_cycle(position);
  if (position.done < o.warmup_steps) {
    const auto reached = static_cast<double>(position.done + position.next);
    return o.learning_rate * std::min(reached / static_cast<double>(o.warmup_steps), 1.0);
  }
  if (o.name == "multistep") {
    const auto passed =
        std::count_if(o.milestones.begin(), o.milestones.end(), [&](int64_t m) { return m <= position.done; });
    return o.learning_rate * std::pow(o.gamma, static_cast<double>(passed));
  }
  if (o.name == "constant") return o.learning_rate;
  const auto span = static_cast<double>(std::max<int64_t>(o.decay_steps - o.warmup_steps, 1));
  const double share = std::min(static_cast<double>(position.done - o.warmup_steps) / span, 1.0);
  if (o.name == "cosine") return cosine_between(o.learning_rate, o.min_lr, share);
  if (o.name == "polynomial") return o.min_lr + (o.learning_rate - o.min_lr) * std::pow(1 - share, o.power);
  return o.learning_rate + (o.min_lr - o.learning_rate) * share;
}

double Schedule::one_cycle(const Position& position) const {
  const double first = options_.learning_rate / options_.div_factor;
  const double last = first / options_.final_div_factor;
  const auto next = static_cast<double>(position.next);
  const double peak_at = options_.pct_start * static_cast<double>(options_.decay_steps) - next;
  const double end_at = static_cast<double>(options_.decay_steps) - next;
  const auto t = static_cast<double>(position.done);
  if (t <= peak_at) return cosine_between(first, options_.learning_rate, peak_at > 0 ? t / peak_at : 1.0);
  const double fall = end_at - std::max(peak_at, 0.0);
  const double share = fall > 0 ? (t - std::max(peak_at, 0.0)) / fall : 1.0;
  return cosine_between(options_.learning_rate, last, std::min(share, 1.0));
}

}  // namespace assay
