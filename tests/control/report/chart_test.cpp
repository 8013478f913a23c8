#include "report/chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sample_run.h"

using namespace assay;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Curve curve(const std::string& name, std::vector<double> x, std::vector<double> y) {
  return {.name = name,
          .stage = name.starts_with("val.") ? "VALID" : "TRAIN",
          .unit = "",
          .x = std::move(x),
          .y = std::move(y),
          .label = "",
          .source = ""};
}

RunView run_with(std::vector<Curve> curves) {
  RunView run;
  run.curves = std::move(curves);
  return run;
}

}  // namespace

TEST(Chart, RoundsTicks) {
  const Axis axis = nice_axis(0, 2.3, 5, true);
  EXPECT_EQ(axis.low, 0);
  EXPECT_EQ(axis.high, 2.5);
  EXPECT_EQ(axis.step, 0.5);
  EXPECT_EQ(axis.ticks, (std::vector<double>{0, 0.5, 1, 1.5, 2, 2.5}));
  EXPECT_EQ(nice_axis(10, 2345, 6, false).ticks, (std::vector<double>{500, 1000, 1500, 2000}));
  EXPECT_EQ(nice_axis(5, 1, 4, true).low, 1);  // swapped ends
}

TEST(Chart, FindsAnAxisForAnyRange) {
  for (double low : {0.0, 1.0, -1.0, 1e-320, 1e-150, -1e149, 1e149, 123456789.0}) {
    for (double high : {0.0, 1.0, 1e-320, 1e-150, 1e149, 123456789.0, 123456789.0 + 1e-6}) {
      for (bool round_ends : {true, false}) {
        const Axis axis = nice_axis(low, high, 5, round_ends);
        EXPECT_LT(axis.low, axis.high) << low << " " << high;
        EXPECT_LE(axis.low, std::min(low, high));
        EXPECT_GE(axis.high, std::max(low, high));
        EXPECT_FALSE(axis.ticks.empty());
        EXPECT_LE(axis.ticks.size(), 12u);
        EXPECT_TRUE(std::is_sorted(axis.ticks.begin(), axis.ticks.end()));
      }
    }
  }
}

TEST(Chart, PrintsTickTexts) {
  EXPECT_EQ(tick_text(0, 0.5), "0");
  EXPECT_EQ(tick_text(0.5, 0.5), "0.5");
  EXPECT_EQ(tick_text(1, 0.25), "1.0");
  EXPECT_EQ(tick_text(0.0004, 0.0002), "0.0004");
  EXPECT_EQ(tick_text(3e-6, 1e-6), "3e-06");
  EXPECT_EQ(tick_text(1500, 500), "1500");
  EXPECT_EQ(tick_text(20000, 5000), "20k");
  EXPECT_EQ(tick_text(1.5e6, 5e5), "1.5M");
  EXPECT_EQ(tick_text(-20000, 5000), "-20k");
}

TEST(Chart, GroupsWhatBelongsTogether) {
  const Charts charts = charts_of(
      run_with({curve("train.lr", {1}, {0.1}), curve("val.loss", {2}, {1}), curve("train.loss", {1, 2}, {2, 1}),
                curve("train.ips", {1}, {100}), curve("train.fp_time", {1}, {0.1}), curve("own", {1}, {3})}));
  ASSERT_EQ(charts.charts.size(), 4u);
  EXPECT_EQ(charts.charts[0].title, "Loss");
  EXPECT_EQ(charts.charts[0].series.size(), 2u);
  EXPECT_EQ(charts.charts[1].title, "Throughput");
  EXPECT_EQ(charts.charts[1].y.low, 0);  // a rate is shown from zero
  EXPECT_EQ(charts.charts[2].title, "Learning rate");
  EXPECT_EQ(charts.charts[3].title, "own");
}

TEST(Chart, AlignsStepsAndColoursOverAllCharts) {
  const Charts charts =
      charts_of(run_with({curve("train.loss", {10, 1000}, {2, 1}), curve("val.metric", {500}, {0.9})}));
  ASSERT_EQ(charts.charts.size(), 2u);
  EXPECT_EQ(charts.charts[0].x.low, charts.charts[1].x.low);
  EXPECT_EQ(charts.charts[0].x.high, charts.charts[1].x.high);
  EXPECT_EQ(charts.charts[0].x.low, 0);
  EXPECT_EQ(charts.charts[0].series[0].colour, 0u);
  EXPECT_EQ(charts.charts[1].series[0].colour, 1u);
}

TEST(Chart, IncludesTheTarget) {
  RunView run = sample_run();
  run.curves[1].y = {0.5};
  const Charts charts = charts_of(run);
  ASSERT_EQ(charts.charts.size(), 2u);
  EXPECT_EQ(charts.charts[1].title, "Accuracy");
  EXPECT_EQ(charts.charts[1].target, 0.9);
  EXPECT_GE(charts.charts[1].y.high, 0.9);
  EXPECT_FALSE(charts.charts[0].target);
}

TEST(Chart, MarksBrokenPointsAsStretches) {
  const double nan = std::nan("");
  const Charts charts =
      charts_of(run_with({curve("train.loss", {1, 2, 3, 4, 5, 6, 7}, {1, nan, nan, 2, kInf, 3, 1e300})}));
  const Series& series = charts.charts[0].series[0];
  ASSERT_EQ(series.broken.size(), 3u);
  EXPECT_EQ(series.broken[0].first_x, 2);
  EXPECT_EQ(series.broken[0].last_x, 3);
  EXPECT_EQ(series.broken[0].what, "NaN");
  EXPECT_EQ(series.broken[1].what, "Infinity");
  EXPECT_EQ(series.broken[2].what, "1e+300");
  EXPECT_LE(charts.charts[0].y.high, 4);  // what cannot be drawn does not stretch the axis
}

TEST(Chart, DrawsBrokenPointsAlone) {
  const Charts charts = charts_of(run_with({curve("train.loss", {1, 2}, {std::nan(""), std::nan("")})}));
  ASSERT_EQ(charts.charts.size(), 1u);
  EXPECT_LT(charts.charts[0].y.low, charts.charts[0].y.high);
  EXPECT_EQ(charts.charts[0].series[0].broken.size(), 1u);
}

TEST(Chart, JoinsThousandsOfBrokenStretches) {
  std::vector<double> x, y;
  for (int i = 0; i < 1000; ++i) {
    x.push_back(i);
    y.push_back(i % 2 ? 1.0 : std::nan(""));
  }
  const Charts charts = charts_of(run_with({curve("train.loss", x, y)}));
  const auto& broken = charts.charts[0].series[0].broken;
  EXPECT_LE(broken.size(), 40u);
  EXPECT_EQ(broken.back().last_x, 998);
}

TEST(Chart, SortsUnorderedAndImpossibleSteps) {
  const Charts charts = charts_of(run_with({curve("train.loss", {3, std::nan(""), 1, kInf, 2}, {30, 99, 10, 99, 20})}));
  EXPECT_EQ(charts.charts[0].series[0].x, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(charts.charts[0].series[0].y, (std::vector<double>{10, 20, 30}));
}

TEST(Chart, CountsTooManyCurves) {
  std::vector<Curve> curves(kMaxSeries + 7, curve("train.loss", {1, 2}, {1, 2}));
  EXPECT_EQ(charts_of(run_with(curves)).num_left_out, 7u);
}

TEST(Chart, ShowsMeansOfPhases) {
  EXPECT_TRUE(phases_of(run_with({curve("train.fp_time", {1}, {0.1})})).empty());
  const auto phases = phases_of(run_with({curve("train.bp_time", {1, 2, 3}, {0.2, 0.4, std::nan("")}),
                                          curve("train.data_time", {1}, {0.1}), curve("val.bp_time", {1}, {9})}));
  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(phases[0].name, "data");
  EXPECT_EQ(phases[1].name, "backward");
  EXPECT_DOUBLE_EQ(phases[1].seconds, 0.3);
}
