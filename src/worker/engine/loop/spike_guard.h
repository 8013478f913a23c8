// Stops a run whose loss jumps. The rule: with m the median of the losses of the last `window` steps, a loss above
// `factor` * m is a spike. Before `window` steps are done, and where m is not positive, there is no judgement.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace assay {

class SpikeGuard {
 public:
  struct Options {
    int64_t window = 32;  // steps
    double factor = 3;
  };
  explicit SpikeGuard(const Options& options) : options_(options) {}

  // The largest loss that is not a spike after these, oldest first; nullopt: no judgement.
  std::optional<double> limit(const std::vector<double>& recent) const;
  // Adds the loss of an accepted step and forgets what is older than the window.
  void add(std::vector<double>& recent, double loss) const;

 private:
  Options options_;
};

// The middle of the sorted values, or the mean of the two in the middle. `values` must not be empty.
double median(std::vector<double> values);

}  // namespace assay
