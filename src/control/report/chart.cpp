#include "report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "record/keys.h"
#include "report/decimate.h"
#include "report/figures.h"

namespace assay {

namespace {

constexpr double kLargest = 1e150;  // beyond it, differences and products of the drawing would overflow
constexpr double kSmallest = 1e-200;
constexpr size_t kPointsOfAll = 24'000;
constexpr size_t kMaxPointsOfOne = 1'500;
constexpr size_t kMinPointsOfOne = 60;
constexpr size_t kMaxBroken = 40;

constexpr std::array<std::pair<const char*, const char*>, 4> kPhases = {{{keys::kTrainDataTime, "data"},
                                                                         {keys::kTrainForwardTime, "forward"},
                                                                         {keys::kTrainBackwardTime, "backward"},
                                                                         {keys::kTrainOptimizerTime, "optimizer"}}};

bool is_phase(const std::string& name) {
  const auto same = [&](const auto& phase) { return name == phase.first; };
  return name == keys::kTrainComputeTime || std::any_of(kPhases.begin(), kPhases.end(), same);
}

struct CurveKind {
  int order = 0;  // of the chart on the page
  std::string title;
  bool from_zero = false;
};

CurveKind curve_kind(const Curve& curve) {
  const size_t dot = curve.name.find('.');
  const std::string what = dot == std::string::npos ? curve.name : curve.name.substr(dot + 1);
  if (what == "loss") return {.order = 0, .title = "Loss", .from_zero = false};
  if (what == "metric") {
    std::string title = curve.label.empty() ? "Metric" : curve.label;
    if (title[0] >= 'a' && title[0] <= 'z') title[0] = static_cast<char>(title[0] - 'a' + 'A');
    return {.order = 1, .title = title, .from_zero = false};
  }
  if (curve.name == keys::kTrainIps) return {.order = 2, .title = "Throughput", .from_zero = true};
  if (curve.name == keys::kTrainLr) return {.order = 3, .title = "Learning rate", .from_zero = true};
  if (curve.name == keys::kValIps) return {.order = 4, .title = "Evaluation throughput", .from_zero = true};
  return {.order = 5, .title = curve.label.empty() ? curve.name : curve.label, .from_zero = false};
}

std::string series_label(const Curve& curve) {
  std::string label = curve.stage == "VALID" || curve.name.starts_with("val.") ? "validation"
                      : curve.stage == "TRAIN" || curve.name.starts_with("train.")
                          ? "train"
                          : (curve.label.empty() ? curve.name : curve.label);
  return curve.source.empty() ? label : curve.source + " " + label;
}

// Points with a finite x, in the order of x.
Curve ordered(const Curve& curve) {
  std::vector<size_t> order;
  for (size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
    if (std::isfinite(curve.x[i]) && std::fabs(curve.x[i]) < kLargest) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return curve.x[a] < curve.x[b]; });
  Curve out = curve;
  out.x.clear();
  out.y.clear();
  for (size_t i : order) {
    out.x.push_back(curve.x[i]);
    out.y.push_back(curve.y[i]);
  }
  return out;
}

std::vector<BrokenStretch> broken_stretches(const Series& series) {
  std::vector<BrokenStretch> out;
  bool inside = false;
  for (size_t i = 0; i < series.y.size(); ++i) {
    const bool broken = !drawable(series.y[i]);
    if (broken && !inside && out.size() < kMaxBroken) {
      out.push_back({.first_x = series.x[i], .last_x = series.x[i], .what = number_text(series.y[i])});
    } else if (broken && !out.empty()) {
      out.back().last_x = series.x[i];  // beyond kMaxBroken the last one covers the rest
    }
    inside = broken;
  }
  return out;
}

Series series_of(const Curve& curve, size_t max_points) {
  const Curve thin = decimated(ordered(curve), max_points);
  Series series{.label = series_label(curve),
                .colour = 0,
                .x = thin.x,
                .y = thin.y,
                .broken = {},
                .total_points = std::max({curve.total_points, thin.total_points, thin.x.size()})};
  series.broken = broken_stretches(series);
  return series;
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void cover(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

void set_y_axis(Chart& chart, bool from_zero) {
  Range y;
  for (const Series& series : chart.series) {
    for (double value : series.y) {
      if (drawable(value)) y.cover(value);
    }
  }
  if (chart.target) y.cover(*chart.target);
  if (y.empty()) y.cover(0);
  // A range that nearly starts at zero reads better when it does.
  if (from_zero || (y.low > 0 && y.low < 0.25 * y.high)) y.cover(0);
  chart.y = nice_axis(y.low, y.high, 5, true);
}

Axis common_x_axis(const std::vector<Chart>& charts) {
  Range x;
  for (const Chart& chart : charts) {
    for (const Series& series : chart.series) {
      for (double value : series.x) x.cover(value);
    }
  }
  if (x.empty() || (x.low > 0 && x.low < 0.25 * x.high)) x.cover(0);
  return nice_axis(x.low, x.high, 6, false);
}

// "train" and "validation" have the first two colours on every page.
void set_colours(std::vector<Chart>& charts) {
  std::vector<std::string> labels = {"train", "validation"};
  for (Chart& chart : charts) {
    for (Series& series : chart.series) {
      const auto found = std::find(labels.begin(), labels.end(), series.label);
      series.colour = static_cast<size_t>(found - labels.begin());
      if (found == labels.end()) labels.push_back(series.label);
    }
  }
}

}  // namespace

bool drawable(double y) { return std::isfinite(y) && std::fabs(y) < kLargest; }

Axis nice_axis(double low, double high, size_t num_ticks, bool round_ends) {
  if (low > high) std::swap(low, high);
  const double size = std::max(std::fabs(low), std::fabs(high));
  if (high - low <= std::max(size * 1e-9, kSmallest)) {  // one value: give it room, in proportion
    const double room = size > kSmallest ? size * 0.1 : 1;
    low -= room;
    high += room;
  }
  const double rough = (high - low) / static_cast<double>(std::max<size_t>(num_ticks, 1));
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double factor = rough / power;
  Axis axis;
  axis.step = power * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
  const double first = std::floor(low / axis.step);
  const double last = std::ceil(high / axis.step);
  axis.low = round_ends ? std::min(low, first * axis.step) : low;  // the product may be rounded inwards
  axis.high = round_ends ? std::max(high, last * axis.step) : high;
  const double slack = axis.step * 1e-6;
  for (double k = first; k <= last && axis.ticks.size() < 100; ++k) {
    const double tick = k * axis.step;
    if (tick >= axis.low - slack && tick <= axis.high + slack) axis.ticks.push_back(tick == 0 ? 0 : tick);
  }
  return axis;
}

std::string tick_text(double value, double step) {
  if (std::fabs(value) < step * 1e-6) return "0";
  const double size = std::fabs(value);
  if (size >= 1e10 || step < 9e-6) return fmt::format("{:.3g}", value);
  if (size >= 1e4 && step >= 100) {
    const std::string text = fmt::format("{:g}", value / (size >= 1e6 ? 1e6 : 1e3));
    if (text.size() <= 6) return text + (size >= 1e6 ? "M" : "k");
  }
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 9);
  return fmt::format("{:.{}f}", value, decimals);
}

Charts charts_of(const RunView& run) {
  std::vector<const Curve*> curves;
  for (const Curve& curve : run.curves) {
    if (!is_phase(curve.name) && !curve.x.empty()) curves.push_back(&curve);
  }
  Charts out;
  if (curves.size() > kMaxSeries) {
    out.num_left_out = curves.size() - kMaxSeries;
    curves.resize(kMaxSeries);
  }
  const size_t points = std::clamp(kPointsOfAll / std::max<size_t>(curves.size(), 1), kMinPointsOfOne, kMaxPointsOfOne);

  // A chart for each kind and unit, in the order of the kinds, then of their first curve.
  std::map<int, std::vector<std::pair<Chart, bool>>> by_order;
  for (const Curve* curve : curves) {
    const CurveKind kind = curve_kind(*curve);
    auto& charts = by_order[kind.order];
    auto found = std::find_if(charts.begin(), charts.end(), [&](const auto& entry) {
      return entry.first.title == kind.title && entry.first.unit == curve->unit;
    });
    if (found == charts.end()) {
      Chart chart;
      chart.title = kind.title;
      chart.unit = curve->unit;
      if (kind.order == 1 && run.case_results.size() == 1) chart.target = target_value(run.case_results[0]);
      if (chart.target && !drawable(*chart.target)) chart.target.reset();
      found = charts.insert(charts.end(), {std::move(chart), kind.from_zero});
    }
    found->first.series.push_back(series_of(*curve, points));
  }
  for (auto& [order, charts] : by_order) {
    for (auto& [chart, from_zero] : charts) {
      set_y_axis(chart, from_zero);
      out.charts.push_back(std::move(chart));
    }
  }
  const Axis x = common_x_axis(out.charts);
  for (Chart& chart : out.charts) chart.x = x;
  set_colours(out.charts);
  return out;
}

std::vector<Phase> phases_of(const RunView& run) {
  std::vector<Phase> phases;
  for (const auto& [key, name] : kPhases) {
    double sum = 0;
    size_t count = 0;
    for (const Curve& curve : run.curves) {
      if (curve.name != key) continue;
      for (double seconds : curve.y) {
        if (!drawable(seconds) || seconds < 0) continue;
        sum += seconds;
        ++count;
      }
    }
    if (count > 0) phases.push_back({.name = name, .seconds = sum / static_cast<double>(count)});
  }
  if (phases.size() < 2) phases.clear();
  return phases;
}

}  // namespace assay
