#include "report/junit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sample_run.h"

using namespace assay;
using testing::HasSubstr;
using testing::Not;

TEST(Junit, WritesAPassedRun) {
  EXPECT_EQ(
      render_junit(sample_run()),
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"assay\" tests=\"3\" failures=\"0\" errors=\"0\" skipped=\"0\" time=\"100.000\">\n"
      "  <testsuite name=\"demo: resnet on Fashion-MNIST\" id=\"0\" timestamp=\"2026-11-15T19:43:05\" tests=\"3\" "
      "failures=\"0\" errors=\"0\" skipped=\"0\" time=\"100.000\">\n"
      "    <properties>\n"
      "      <property name=\"assay.run\" value=\"20261115-194305-demo\"/>\n"
      "      <property name=\"assay.command\" value=\"assay demo --set Optimizer.lr=0.1\"/>\n"
      "      <property name=\"assay.outcome\" value=\"Pass\"/>\n"
      "    </properties>\n"
      "    <testcase classname=\"assay.20261115-194305-demo.steps\" name=\"1-train\" time=\"80.000\"/>\n"
      "    <testcase classname=\"assay.20261115-194305-demo.steps\" name=\"2-evaluate\" time=\"20.000\"/>\n"
      "    <testcase classname=\"assay.20261115-194305-demo.verdicts\" name=\"accuracy reaches its target\">\n"
      "      <system-out>0.9132 &gt;= 0.9000\n</system-out>\n"
      "    </testcase>\n"
      "  </testsuite>\n"
      "</testsuites>\n");
}

TEST(Junit, WritesAnElementPerOutcome) {
  const std::string xml = render_junit(failing_run());
  EXPECT_THAT(xml, HasSubstr("tests=\"4\" failures=\"1\" errors=\"2\" skipped=\"1\" time=\"80.000\""));
  EXPECT_THAT(xml, HasSubstr("<error message=\"killed by signal 9 (Killed)\" type=\"Error\">"));
  EXPECT_THAT(xml, HasSubstr("name=\"2-evaluate\">\n      <skipped message=\"needs step 1\"/>"));  // no time: never ran
  EXPECT_THAT(xml, HasSubstr("<error message=\"not measured\" type=\"Invalid\">"));
  EXPECT_THAT(xml, HasSubstr("<failure message=\"NaN at step 30\" type=\"Fail\">NaN at step 30</failure>"));
  EXPECT_THAT(xml, HasSubstr("<system-out>step 10 loss 2.5\nout of memory\n</system-out>"));
}

TEST(Junit, DoesNotPassARunWithoutSteps) {
  EXPECT_THAT(render_junit(empty_run()), HasSubstr("tests=\"1\" failures=\"0\" errors=\"1\""));
  EXPECT_THAT(render_junit(empty_run()), HasSubstr("<error message=\"the plan has no step\" type=\"Invalid\">"));
  RunView run = sample_run();
  run.outcome = Outcome::Invalid;
  run.verdicts.clear();
  for (StepView& step : run.steps) step.outcome = Outcome::Skipped;
  EXPECT_THAT(render_junit(run), HasSubstr("tests=\"3\" failures=\"0\" errors=\"1\" skipped=\"2\""));
  run.outcome = Outcome::Skipped;
  EXPECT_THAT(render_junit(run), HasSubstr("errors=\"1\""));
  run.outcome = Outcome::Fail;
  EXPECT_THAT(render_junit(run), HasSubstr("failures=\"1\" errors=\"0\""));
}

TEST(Junit, KeepsForeignTextAsText) {
  const std::string xml = render_junit(hostile_run());
  EXPECT_THAT(xml, Not(HasSubstr("<script")));
  EXPECT_THAT(xml, Not(HasSubstr("<img")));
  EXPECT_THAT(xml, Not(HasSubstr("]]>")));
  for (char c : xml) ASSERT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
}
