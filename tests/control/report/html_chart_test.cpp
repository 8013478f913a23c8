#include "report/html_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sample_run.h"

using namespace assay;
using testing::HasSubstr;
using testing::Not;

namespace {

Chart loss_chart(std::vector<double> x, std::vector<double> y) {
  RunView run = sample_run();
  run.curves.resize(1);
  run.curves[0].x = std::move(x);
  run.curves[0].y = std::move(y);
  return charts_of(run).charts.at(0);
}

}  // namespace

TEST(HtmlChart, DrawsLinesWhereTheNumbersAre) {
  // x from 0 to 30 and y from 0 to 2.5, each on 4000 units, y downwards.
  const std::string html = html_chart(loss_chart({0, 15, 30}, {2.5, 1.25, 0}), 0);
  EXPECT_THAT(html, HasSubstr("<path class=\"line\" d=\"M0 0h0L2000 2000L4000 4000\"/>"));
  EXPECT_THAT(html, HasSubstr("<span style=\"bottom:0.00%\">0</span>"));
  EXPECT_THAT(html, HasSubstr("<span style=\"bottom:100.00%\">2.5</span>"));
  EXPECT_THAT(html,
              HasSubstr("aria-label=\"Loss over training steps: train from 2.500 to 0, lowest 0, highest 2.500\""));
}

TEST(HtmlChart, InterruptsTheLineAtBrokenPoints) {
  const std::string html = html_chart(loss_chart({0, 10, 20, 30, 40}, {2, 1, std::nan(""), 1, 2}), 0);
  EXPECT_THAT(html, HasSubstr("d=\"M0 0h0L1000 4000M3000 4000h0L4000 0\""));
  EXPECT_THAT(html, HasSubstr("<div class=\"broken\" data-series=\"0\" style=\"left:50.00%;width:0.00%\" "
                              "title=\"train: NaN at step 20\"><span>NaN</span></div>"));
  EXPECT_THAT(html, HasSubstr(", NaN at step 20\""));  // in words, for those who do not see it
}

TEST(HtmlChart, ReportsThinnedCurves) {
  std::vector<double> x, y;
  for (int i = 0; i < 100'000; ++i) {
    x.push_back(i);
    y.push_back(std::sin(i * 0.001));
  }
  const Chart chart = loss_chart(x, y);
  EXPECT_THAT(html_chart(chart, 0), HasSubstr(" of 100000 points drawn"));
  EXPECT_LT(html_chart(chart, 0).size() + to_line(chart_data(chart)).size(), 60'000u);
  EXPECT_THAT(html_chart(loss_chart({1, 2}, {1, 2}), 0), Not(HasSubstr("points drawn")));
}

TEST(HtmlChart, WritesDataForTheScript) {
  const Json data = chart_data(loss_chart({0, 10, 30}, {1.0 / 3, std::nan(""), 2}));
  EXPECT_EQ(to_line(data),
            R"({"x":[0.0,30.0],"y":[0.0,2.0],"series":[{"label":"train","x":[0,10,30],"y":[0.333333,"NaN",2]}]})");
}

TEST(HtmlChart, AddsUpPhases) {
  EXPECT_EQ(html_phases({}), "");
  const std::string html = html_phases({{.name = "forward", .seconds = 0.010}, {.name = "backward", .seconds = 0.030}});
  EXPECT_THAT(html, HasSubstr("40 ms in all"));
  EXPECT_THAT(html, HasSubstr("<td class=\"num\">10 ms</td><td class=\"num\">25.0 %</td>"));
  EXPECT_THAT(html, HasSubstr("style=\"flex-grow:0.7500\""));
  EXPECT_THAT(html_phases({{.name = "a", .seconds = 0}, {.name = "b", .seconds = 0}}), Not(HasSubstr("nan")));
}
