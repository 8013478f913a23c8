#include "report/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

#include "base/error.h"
#include "sample_run.h"

using namespace assay;
using testing::HasSubstr;
using testing::Not;

namespace {

size_t count(const std::string& text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

Curve long_curve(const std::string& name, size_t num_points) {
  Curve curve{.name = name, .stage = "TRAIN", .unit = "", .x = {}, .y = {}, .label = "", .source = ""};
  for (size_t i = 0; i < num_points; ++i) {
    curve.x.push_back(static_cast<double>(i));
    curve.y.push_back(std::sin(static_cast<double>(i) * 12.9898) * 43758.5453);
  }
  return curve;
}

}  // namespace

TEST(Html, IsOneFileThatAsksForNothing) {
  const std::string html = render_html(sample_run());
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"));
  EXPECT_TRUE(html.ends_with("</html>\n"));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  // The only addresses: the icon in the file itself, and the name of SVG inside it.
  for (const char* part : {"src=\"http", "href=\"http", "url(", "@import", "<iframe", "<object"}) {
    EXPECT_THAT(html, Not(HasSubstr(part)));
  }
  EXPECT_EQ(count(html, "://"), count(html, "xmlns='http://www.w3.org/2000/svg'"));
}

TEST(Html, HasEverySection) {
  const std::string html = render_html(failing_run());
  for (const char* id : {"verdicts", "steps", "log", "curves", "results", "environment", "parameters"}) {
    EXPECT_THAT(html, HasSubstr("<section id=\"" + std::string(id) + "\""));
    EXPECT_THAT(html, HasSubstr("<a href=\"#" + std::string(id) + "\">"));
  }
  EXPECT_THAT(html, HasSubstr("<title>Error: demo: resnet on Fashion-MNIST</title>"));
  EXPECT_EQ(count(html, "<figure class=\"chart card\""), 2u);
}

TEST(Html, RendersAnEmptyRun) {
  const std::string html = render_html(empty_run());
  EXPECT_THAT(html, HasSubstr("The plan had no step: nothing was run."));
  EXPECT_THAT(html, Not(HasSubstr("<figure")));
  EXPECT_THAT(html, HasSubstr("{\"charts\":[]}"));
}

TEST(Html, EscapesForeignText) {
  const std::string html = render_html(hostile_run());
  EXPECT_EQ(count(html, "<script"), 2u);  // the data and ours
  EXPECT_EQ(count(html, "</script"), 2u);
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html, Not(HasSubstr("\xE2\x80\xA8")));
  EXPECT_GT(count(html, "&lt;/script&gt;"), 20u);
  // No attribute is closed early: every quote of the hostile text is an entity.
  EXPECT_THAT(html, Not(HasSubstr("alert(2)>\"")));
}

TEST(Html, NamesThePagesScriptInThePolicy) {
  // The hash is computed again from the page in tests/cli/report_html_test.py; here: it is there and well-formed.
  EXPECT_TRUE(std::regex_search(render_html(empty_run()), std::regex("script-src 'sha256-[A-Za-z0-9+/]{43}='")));
}

TEST(Html, KeepsHugeCurvesSmall) {
  RunView run = sample_run();
  run.curves = {long_curve("train.loss", 1'000'000), long_curve("val.loss", 100'000), long_curve("train.ips", 100'000),
                long_curve("train.lr", 100'000)};
  run.curves[0].y[123'456] = std::nan("");
  const std::string html = render_html(run);
  EXPECT_LT(html.size(), 400'000u);
  EXPECT_THAT(html, HasSubstr("NaN at step 123456"));
  EXPECT_THAT(html, HasSubstr(" of 1000000 points drawn"));
}

TEST(Html, KeepsManyCurvesBelowAMegabyte) {
  RunView run = sample_run();
  run.curves.clear();
  for (int i = 0; i < 300; ++i) run.curves.push_back(long_curve("own." + std::to_string(i), 5'000));
  const std::string html = render_html(run);
  EXPECT_LT(html.size(), 1'000'000u);
  EXPECT_THAT(html, HasSubstr("200 more curves are in result.json."));
}
