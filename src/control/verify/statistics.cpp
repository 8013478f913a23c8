#include "verify/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace assay {

namespace {

// The continued fraction of the incomplete beta function, evaluated from the front (Lentz's way): b0 = 1, and each
// numerator by its own formula for even and odd places.
double beta_fraction(double x, double a, double b) {
  constexpr double kTiny = 1e-300;
  constexpr double kGoodEnough = 1e-16;
  constexpr int kMaxTerms = 10'000;
  const auto kept_apart_from_zero = [](double v) { return std::fabs(v) < kTiny ? kTiny : v; };
  double c = 1;
  double d = 1 / kept_apart_from_zero(1 - (a + b) * x / (a + 1));
  double value = d;
  for (int m = 1; m <= kMaxTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / kept_apart_from_zero(1 + even * d);
    c = kept_apart_from_zero(1 + even / c);
    value *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / kept_apart_from_zero(1 + odd * d);
    c = kept_apart_from_zero(1 + odd / c);
    const double factor = c * d;
    value *= factor;
    if (std::fabs(factor - 1) < kGoodEnough) break;
  }
  return value;
}

// The regularised incomplete beta function I_x(a, b); y is 1 - x, given apart so that neither loses digits.
double incomplete_beta(double x, double y, double a, double b) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log(y));
  // The fraction converges quickly on one side of the mean; the other side is its mirror.
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(x, a, b) / a;
  return 1 - front * beta_fraction(y, b, a) / b;
}

// P(|T| >= |t|)
double two_sided_p(double t, double df) {
  if (std::isinf(t)) return 0;
  const double square = t * t;
  if (std::isinf(square)) return 0;
  return incomplete_beta(df / (df + square), square / (df + square), df / 2, 0.5);
}

std::vector<double> finite_values(const std::vector<double>& values) {
  std::vector<double> out;
  for (double value : values) {
    if (std::isfinite(value)) out.push_back(value);
  }
  return out;
}

// What overflowed is not known.
std::optional<double> if_finite(double value) {
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

// Of sorted, finite values.
double at_fraction(const std::vector<double>& sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double share = place - static_cast<double>(below);
  return sorted[below] * (1 - share) + sorted[below + 1] * share;
}

double mean_of(const std::vector<double>& values, size_t first, size_t last) {
  double mean = 0;
  for (size_t i = first; i < last; ++i) mean += (values[i] - mean) / static_cast<double>(i - first + 1);
  // Rounding must not put the mean of equal values beside them.
  return std::clamp(mean, values[first], values[last - 1]);
}

std::optional<double> relative_to(double value, double base) {
  return base == 0 ? std::nullopt : if_finite(value / std::fabs(base));
}

}  // namespace

double student_t_cdf(double t, double df) {
  ASSAY_CHECK(df > 0, "degrees of freedom");
  const double tail = two_sided_p(t, df) / 2;
  return t > 0 ? 1 - tail : tail;
}

double student_t_quantile(double p, double df) {
  ASSAY_CHECK(p > 0 && p < 1 && df > 0, "a probability and degrees of freedom");
  if (p == 0.5) return 0;
  const double wanted = 2 * std::min(p, 1 - p);  // both tails
  double high = 1;
  while (two_sided_p(high, df) > wanted && std::isfinite(high)) high *= 2;
  double low = 0;
  // Halving gains a bit each time; a double has no more than these.
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (two_sided_p(middle, df) > wanted ? low : high) = middle;
  }
  return p < 0.5 ? -high : high;
}

std::optional<double> Description::margin() const {
  return interval ? if_finite((interval->high - interval->low) / 2) : std::nullopt;
}

Description describe_values(const std::vector<double>& values, double confidence) {
  ASSAY_CHECK(confidence > 0 && confidence < 1, "a confidence");
  std::vector<double> sorted = finite_values(values);
  std::sort(sorted.begin(), sorted.end());
  Description out;
  out.n = sorted.size();
  out.num_non_finite = values.size() - sorted.size();
  if (sorted.empty()) return out;
  out.smallest = sorted.front();
  out.largest = sorted.back();
  out.median = if_finite(at_fraction(sorted, 0.5));
  out.mean = if_finite(mean_of(sorted, 0, sorted.size()));
  if (sorted.size() >= 3) out.olympic_mean = if_finite(mean_of(sorted, 1, sorted.size() - 1));
  if (sorted.size() < 2 || !out.mean) return out;
  double squares = 0;
  for (double value : sorted) squares += (value - *out.mean) * (value - *out.mean);
  const auto n = static_cast<double>(sorted.size());
  out.deviation = if_finite(std::sqrt(squares / (n - 1)));
  if (!out.deviation) return out;
  const double half = student_t_quantile(0.5 + confidence / 2, n - 1) * *out.deviation / std::sqrt(n);
  if (std::isfinite(*out.mean - half) && std::isfinite(*out.mean + half)) {
    out.interval = Interval{.low = *out.mean - half, .high = *out.mean + half};
  }
  return out;
}

std::optional<double> percentile(std::vector<double> values, double fraction) {
  values = finite_values(values);
  if (values.empty() || !(fraction >= 0 && fraction <= 1)) return std::nullopt;
  std::sort(values.begin(), values.end());
  return if_finite(at_fraction(values, fraction));
}

size_t num_warmup(size_t num_steps) { return num_steps == 0 ? 0 : std::max<size_t>(1, num_steps / 10); }

StepTimes describe_steps(const std::vector<double>& seconds) {
  StepTimes out;
  out.num_warmup = num_warmup(seconds.size());
  std::vector<double> sorted = finite_values({seconds.begin() + static_cast<ptrdiff_t>(out.num_warmup), seconds.end()});
  out.n = sorted.size();
  if (sorted.empty()) return out;
  std::sort(sorted.begin(), sorted.end());
  out.mean = if_finite(mean_of(sorted, 0, sorted.size()));
  out.p50 = at_fraction(sorted, 0.50);
  out.p90 = at_fraction(sorted, 0.90);
  out.p99 = at_fraction(sorted, 0.99);
  out.largest = sorted.back();
  if (*out.p50 > 0) out.jitter = if_finite((*out.p99 - *out.p50) / *out.p50);
  return out;
}

std::string_view difference_name(Difference difference) {
  switch (difference) {
    case Difference::Larger: return "larger";
    case Difference::Smaller: return "smaller";
    case Difference::None: return "none";
    case Difference::Inconclusive: return "inconclusive";
  }
  return "inconclusive";
}

namespace {

void set_effect_size(Comparison& out) {
  const auto n1 = static_cast<double>(out.baseline.n);
  const auto n2 = static_cast<double>(out.measured.n);
  const double s1 = *out.baseline.deviation;
  const double s2 = *out.measured.deviation;
  const double pooled = std::sqrt(((n1 - 1) * s1 * s1 + (n2 - 1) * s2 * s2) / (n1 + n2 - 2));
  if (!(pooled > 0)) return;
  // Cohen's d is too large for few values; the factor is Hedges' usual approximation.
  const double correction = 1 - 3 / (4 * (n1 + n2) - 9);
  out.effect_size = if_finite(correction * (*out.measured.mean - *out.baseline.mean) / pooled);
}

// p value, degrees of freedom, and the interval of the difference.
void welch_test(Comparison& out) {
  const double v1 = *out.baseline.deviation * *out.baseline.deviation / static_cast<double>(out.baseline.n);
  const double v2 = *out.measured.deviation * *out.measured.deviation / static_cast<double>(out.measured.n);
  const double change = *out.measured.mean - *out.baseline.mean;
  const double error = std::sqrt(v1 + v2);
  double half = 0;
  if (error > 0 && std::isfinite(error)) {
    // Shares instead of squares of variances: they cannot underflow or overflow.
    const double share1 = v1 / (v1 + v2);
    const double share2 = v2 / (v1 + v2);
    out.degrees_of_freedom = 1 / (share1 * share1 / static_cast<double>(out.baseline.n - 1) +
                                  share2 * share2 / static_cast<double>(out.measured.n - 1));
    out.p_value = two_sided_p(change / error, *out.degrees_of_freedom);
    half = student_t_quantile(0.5 + kConfidence / 2, *out.degrees_of_freedom) * error;
  } else if (error == 0) {
    out.p_value = change == 0 ? 1 : 0;  // nothing varies: what differs, differs
  }
  const auto low = relative_to(change - half, *out.baseline.mean);
  const auto high = relative_to(change + half, *out.baseline.mean);
  if (out.p_value && low && high) out.interval = Interval{.low = *low, .high = *high};
}

void judge(Comparison& out, double margin) {
  if (!out.p_value) {
    out.reason = "the values are too large or too small to compute with";
    return;
  }
  const double change = *out.measured.mean - *out.baseline.mean;
  if (*out.p_value < 1 - kConfidence) {
    out.difference = change > 0 ? Difference::Larger : Difference::Smaller;
  } else if (change == 0 && *out.baseline.deviation == 0 && *out.measured.deviation == 0) {
    out.difference = Difference::None;
  } else if (out.interval && out.interval->low > -margin && out.interval->high < margin) {
    out.difference = Difference::None;
  } else if (!out.interval) {
    out.reason = "the baseline's mean is 0, so there is no relative difference";
  } else {
    out.reason =
        fmt::format("the difference may be anything from {:+.1f} % to {:+.1f} %: more rounds, or a quieter machine",
                    100 * out.interval->low, 100 * out.interval->high);
  }
}

}  // namespace

Comparison compare_values(const std::vector<double>& baseline, const std::vector<double>& measured, double margin) {
  Comparison out;
  out.baseline = describe_values(baseline);
  out.measured = describe_values(measured);
  if (out.baseline.mean && out.measured.mean) {
    out.relative = relative_to(*out.measured.mean - *out.baseline.mean, *out.baseline.mean);
  }
  if (out.baseline.n < kMinRounds || out.measured.n < kMinRounds) {
    out.reason =
        fmt::format("{} and {} rounds; a difference takes {} on each side", out.baseline.n, out.measured.n, kMinRounds);
    return out;
  }
  if (!out.baseline.deviation || !out.measured.deviation) {
    out.reason = "the values are too large to compute with";
    return out;
  }
  set_effect_size(out);
  welch_test(out);
  judge(out, margin);
  return out;
}

}  // namespace assay
