// Curves arranged as charts: which belong together, what range the axes cover, where the ticks are, which points are
// drawn, where a value stopped being a number. Knows numbers only; report/html_chart.h draws.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/run_view.h"

namespace assay {

struct Axis {
  double low = 0;
  double high = 1;
  double step = 1;            // between ticks
  std::vector<double> ticks;  // all within [low, high]
};
// Ticks at 1, 2 or 5 times a power of ten, about `num_ticks` of them, low and high moved outwards to ticks when
// `round_ends`. Any finite input is good, also equal or swapped ends.
Axis nice_axis(double low, double high, size_t num_ticks, bool round_ends);
std::string tick_text(double value, double step);  // 0.25, 1500, 20k, 1e-05

// Neighbouring points that are not numbers (or too large to draw).
struct BrokenStretch {
  double first_x = 0;
  double last_x = 0;
  std::string what;  // "NaN", "Infinity", "1e+300"
};

struct Series {
  std::string label;      // "train", "validation"
  size_t colour = 0;      // the same number for the same label in every chart, from 0
  std::vector<double> x;  // ascending, finite
  std::vector<double> y;  // as recorded; see drawable()
  std::vector<BrokenStretch> broken;
  size_t total_points = 0;  // before thinning
};
bool drawable(double y);

struct Chart {
  std::string title;  // "Loss"
  std::string unit;   // may be empty
  Axis x;
  Axis y;
  std::vector<Series> series;
  std::optional<double> target;  // a level to reach
};

struct Charts {
  std::vector<Chart> charts;
  size_t num_left_out = 0;  // curves beyond kMaxSeries
};
inline constexpr size_t kMaxSeries = 100;
// All charts share one range of x, so that a step is at the same place in each.
Charts charts_of(const RunView& run);

// Mean time per training step in one phase.
struct Phase {
  std::string name;  // "forward"
  double seconds = 0;
};
// Empty unless at least two phases were measured.
std::vector<Phase> phases_of(const RunView& run);

}  // namespace assay
