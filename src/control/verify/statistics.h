// Statistics of repeated measurements: of the few rounds of a benchmark, and of the many steps of one. Knows numbers
// only. A figure that the values cannot give is nullopt, never 0; docs/guide/results.md has the formulas and the
// reasons.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

inline constexpr double kConfidence = 0.95;
// With fewer values on a side nothing is claimed: the spread of two rounds says next to nothing about the next one.
inline constexpr size_t kMinRounds = 3;

// Student's t distribution with df > 0 degrees of freedom, df need not be whole.
double student_t_cdf(double t, double df);
double student_t_quantile(double p, double df);  // 0 < p < 1

struct Interval {
  double low = 0;
  double high = 0;
};

// Values that are not finite are no measurements: they are counted, and left out.
struct Description {
  size_t n = 0;               // finite values
  size_t num_non_finite = 0;  // left out
  std::optional<double> mean;
  std::optional<double> deviation;     // of the sample, with n - 1; from two values on
  std::optional<Interval> interval;    // of the mean, at the confidence asked for; from two values on
  std::optional<double> olympic_mean;  // without one largest and one smallest value; from three values on
  std::optional<double> median;
  std::optional<double> smallest;
  std::optional<double> largest;
  // Half the width of the interval.
  std::optional<double> margin() const;
};
Description describe_values(const std::vector<double>& values, double confidence = kConfidence);

// By linear interpolation between the two nearest ranks (R's type 7, numpy's default); fraction from 0 to 1. nullopt
// without a finite value, or for a fraction that is none.
std::optional<double> percentile(std::vector<double> values, double fraction);

// Times of steps. Warm-up is the first tenth of them, at least the first.
struct StepTimes {
  size_t n = 0;           // that count
  size_t num_warmup = 0;  // left out
  std::optional<double> mean, p50, p90, p99, largest;
  std::optional<double> jitter;  // (p99 - p50) / p50
};
size_t num_warmup(size_t num_steps);
StepTimes describe_steps(const std::vector<double>& seconds);

// Is `measured` another thing than `baseline`, and which way? Welch's t test, two-sided.
enum class Difference {
  Larger,        // shown: the mean is larger than the baseline's
  Smaller,       // shown
  None,          // shown to be within the margin
  Inconclusive,  // too few rounds, or too wide an interval to tell
};
std::string_view difference_name(Difference difference);  // "larger", "smaller", "none", "inconclusive"

struct Comparison {
  Difference difference = Difference::Inconclusive;
  std::string reason;  // of an inconclusive answer
  Description baseline;
  Description measured;
  std::optional<double> relative;            // (measured - baseline) / |baseline|, of the means
  std::optional<Interval> interval;          // of `relative`, at 95 %
  std::optional<double> p_value;             // that equal means give such a difference by chance
  std::optional<double> effect_size;         // Hedges' g; nullopt when nothing varies
  std::optional<double> degrees_of_freedom;  // Welch-Satterthwaite
};
// `margin` is the relative difference that does not matter: 0.05 for 5 %.
Comparison compare_values(const std::vector<double>& baseline, const std::vector<double>& measured, double margin);

}  // namespace assay
