#include "report/figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sample_run.h"

using namespace assay;

TEST(Figures, FormatNumbers) {
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(0.9132), "0.9132");
  EXPECT_EQ(number_text(0.9), "0.9000");
  EXPECT_EQ(number_text(2.302585), "2.303");
  EXPECT_EQ(number_text(412.55), "412.6");
  EXPECT_EQ(number_text(2481.4), "2481");
  EXPECT_EQ(number_text(7), "7");
  EXPECT_EQ(number_text(-7.5), "-7.500");
  EXPECT_EQ(number_text(0.00032), "0.00032");
  EXPECT_EQ(number_text(3.2e-5), "3.2e-05");
  EXPECT_EQ(number_text(1.5e20), "1.5e+20");
  EXPECT_EQ(number_text(std::nan("")), "NaN");
  EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "-Infinity");
}

TEST(Figures, FormatBytes) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.50 KiB");
  EXPECT_EQ(bytes_text(633339904), "604.0 MiB");
  EXPECT_EQ(bytes_text(1e18), "909494.7 TiB");
  EXPECT_EQ(bytes_text(-1), "-");
  EXPECT_EQ(bytes_text(std::nan("")), "-");
}

TEST(Figures, FormatTimes) {
  EXPECT_EQ(when_text(1794771785'339'754), "2026-11-15 19:43:05 UTC");
  EXPECT_EQ(seconds_text(std::nullopt), "-");
  EXPECT_EQ(seconds_text(std::nan("")), "-");
  EXPECT_EQ(seconds_text(0.0), "0.00 s");
  RunView run = sample_run();
  EXPECT_DOUBLE_EQ(run_seconds(run).value(), 100.5);
  run.ended_us.reset();
  EXPECT_FALSE(run_seconds(run));
  run.ended_us = run.started_us - 1;  // a clock that was set back says nothing
  EXPECT_FALSE(run_seconds(run));
}

TEST(Figures, FormatValuesOfAnyType) {
  EXPECT_EQ(value_text(nullptr), "-");
  EXPECT_EQ(value_text(true), "yes");
  EXPECT_EQ(value_text(42), "42");
  EXPECT_EQ(value_text(18446744073709551615ull), "18446744073709551615");
  EXPECT_EQ(value_text("text"), "text");
  EXPECT_EQ(value_text(Json::array({1, 2})), "[1,2]");
}

TEST(Figures, HaveUnits) {
  const Result result = sample_run().case_results[0];
  EXPECT_EQ(result_text(result, "e2e_time"), "98.2 s");
  EXPECT_EQ(result_text(result, "p_train"), "2481 images/s");
  EXPECT_EQ(result_text(result, "peak_memory_bytes"), "1.50 GiB");
  EXPECT_EQ(result_text(result, "target"), "accuracy 0.9000");
  EXPECT_EQ(result_text(result, "mfu"), "-");
  EXPECT_EQ(result_text(result, "not there"), "-");
  EXPECT_EQ(result_text(shown_result({{"mfu", 0.4321}}), "mfu"), "43.2 %");
  EXPECT_EQ(result_text(shown_result({{"p_core", "NaN"}}), "p_core"), "NaN samples/s");
  EXPECT_EQ(result_text(shown_result({{"e2e_time", "soon"}}), "e2e_time"), "soon");
  EXPECT_EQ(result_text(shown_result(3), "e2e_time"), "-");
}

TEST(Figures, ShowTargets) {
  EXPECT_EQ(target_value(shown_result({{"target", 0.9}})), 0.9);
  EXPECT_EQ(target_value(shown_result({{"target", {{"value", 75.5}}}})), 75.5);
  EXPECT_FALSE(target_value(shown_result({{"target", nullptr}})));
  EXPECT_FALSE(target_value(shown_result({{"target", {{"value", "high"}}}})));
  EXPECT_FALSE(target_value(shown_result(Json::array())));
  EXPECT_EQ(metric_name(shown_result({{"target", {{"metric", "perplexity"}}}})), "perplexity");
  EXPECT_EQ(metric_name(Result{}), "accuracy");
}

TEST(Figures, ReportWhatWasNotMeasuredInTheHeadline) {
  const auto figures = headline(sample_run().case_results[0]);
  ASSERT_EQ(figures.size(), 4u);
  EXPECT_EQ(figures[0].label, "accuracy");
  EXPECT_EQ(figures[0].value, "0.9132");
  EXPECT_EQ(figures[0].note, "target 0.9000, reached");
  EXPECT_EQ(figures[1].value, "2481 images/s");
  EXPECT_EQ(figures[3].value, "1.50 GiB");
  for (const Figure& figure : headline(shown_result(Json::object()))) EXPECT_EQ(figure.value, "-") << figure.label;
  for (const Figure& figure : headline(Result{})) EXPECT_EQ(figure.value, "-") << figure.label;
  EXPECT_EQ(headline(shown_result({{"p_whole", 5}}))[1].value, "5 samples/s");
}

TEST(Figures, ShowEveryResultEntryOnce) {
  RunView run = sample_run();
  change_result(run, {{"own_figure", 3}});
  std::vector<std::string> seen;
  for (const FigureGroup& group : all_figures(run.case_results[0])) {
    for (const Figure& figure : group.figures) seen.push_back(group.title + "/" + figure.label + "=" + figure.value);
  }
  for (const char* wanted : {"Quality/final accuracy=0.9132", "Time/end to end=98.2 s", "hashes/case=ab12",
                             "Other figures/own_figure=3", "Speed and resources/model FLOPS utilisation=-"}) {
    EXPECT_EQ(std::count(seen.begin(), seen.end(), wanted), 1) << wanted;
  }
  EXPECT_EQ(seen.size(), 12u);  // 12 keys, one of them the unit, one of them with two entries
}
