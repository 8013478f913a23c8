#include "report/html_sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sample_run.h"

using namespace assay;
using testing::HasSubstr;
using testing::Not;

TEST(HtmlSections, StartsTheHeaderWithTheOutcome) {
  const std::string html = html_header(failing_run());
  EXPECT_THAT(html, HasSubstr("<header class=\"hero error\">"));
  EXPECT_THAT(html, HasSubstr("<p class=\"outcome\">Error</p><h1>demo: resnet on Fashion-MNIST</h1>"));
  EXPECT_THAT(html, HasSubstr("<p class=\"why\">step 1 (train) broke</p>"));
  EXPECT_THAT(html, HasSubstr("<dt>Duration</dt><dd>100.5 s</dd>"));
  EXPECT_THAT(html, HasSubstr("<dt>Verdicts</dt><dd>0 of 2 passed</dd>"));
  EXPECT_THAT(html_header(empty_run()), HasSubstr("<h1>20261115-210000-empty</h1>"));
}

TEST(HtmlSections, ShowsTilesForOneCase) {
  const std::string html = html_headline(sample_run());
  EXPECT_THAT(html, HasSubstr("<span class=\"value\">2481 <small>images/s</small></span>"));
  EXPECT_EQ(html_headline(empty_run()), "");
  EXPECT_THAT(html_headline(failing_run()), HasSubstr("<span class=\"value\">-</span>"));
}

TEST(HtmlSections, PutsStepsOnOneTimeLine) {
  // 80 s and then 20 s.
  const std::string placed = html_steps(sample_run());
  EXPECT_THAT(placed, HasSubstr("style=\"left:0.00%;width:80.00%\""));
  EXPECT_THAT(placed, HasSubstr("style=\"left:80.00%;width:20.00%\""));
  RunView run = sample_run();
  for (StepView& step : run.steps) step.started_us.reset();
  EXPECT_EQ(html_steps(run), placed);  // without start times: end to end
  run.steps[1].seconds.reset();
  EXPECT_THAT(html_steps(run), HasSubstr("<div class=\"track\"></div></td><td class=\"num\">-</td>"));
}

TEST(HtmlSections, GivesVerdictsWordsBesideColours) {
  const std::string html = html_verdicts(failing_run());
  EXPECT_THAT(html, HasSubstr("<h3>Losses are numbers</h3><span class=\"word\">Fail</span><p>NaN at step 30</p>"));
  EXPECT_THAT(html_verdicts(empty_run()), HasSubstr("No question about this run was answered."));
}

TEST(HtmlSections, LogsOfWhatDidNotPass) {
  EXPECT_EQ(html_logs(sample_run()), "");
  EXPECT_THAT(html_logs(failing_run()), HasSubstr(">step 10 loss 2.5\nout of memory\n</pre>"));
}

TEST(HtmlSections, ShowsResultsOfSeveralCases) {
  EXPECT_THAT(html_results(sample_run()), HasSubstr("<h2 id=\"results-title\">Result</h2>"));
  EXPECT_THAT(html_results(sample_run()), Not(HasSubstr("All cases")));
  RunView run = sample_run();
  run.case_results.push_back(shown_result({{"case", "other"}}));
  EXPECT_THAT(html_results(run), HasSubstr("<th scope=\"row\">other</th><td class=\"num\">-</td>"));
  EXPECT_EQ(html_results(empty_run()), "");
}

TEST(HtmlSections, ShowsEnvironmentAndParameters) {
  EXPECT_THAT(html_environment(sample_run()), HasSubstr("<tr><th scope=\"row\">energy meter</th><td>-</td></tr>"));
  EXPECT_THAT(html_parameters(sample_run()), HasSubstr("<code>Engine.threads</code></th><td><code>null</code>"));
  EXPECT_THAT(html_parameters(sample_run()), HasSubstr("<code>[32,64]</code>"));
  EXPECT_EQ(html_parameters(empty_run()), "");
  RunView run = sample_run();
  run.environment = {{"flat", "text"}, {"list", {1, 2}}};
  EXPECT_THAT(html_environment(run), HasSubstr("<td colspan=\"2\">[1,2]</td>"));
}
