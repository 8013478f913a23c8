#include "report/matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/html_sections.h"
#include "report/markdown.h"
#include "report/result_json.h"
#include "report/terminal.h"

using namespace assay;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

Verdict cell(const std::string& row, const std::string& column, Outcome outcome, const std::string& reason = "") {
  Verdict verdict;
  verdict.name = row + " in " + column;
  verdict.outcome = outcome;
  verdict.reason = reason;
  verdict.row = row;
  verdict.column = column;
  if (outcome == Outcome::Pass || outcome == Outcome::Fail) {
    verdict.figures = {{"loss_difference", 2.5e-12}, {"weight_difference", 0}, {"seconds", 1.25}};
  }
  return verdict;
}

RunView run() {
  RunView view;
  view.id = "r";
  view.title = "verify parallel gpt";
  view.outcome = Outcome::Fail;
  view.verdicts = {cell("dp2", "float64", Outcome::Pass),
                   cell("tp2", "float64", Outcome::Fail, "first at step 3"),
                   cell("sp", "float64", Outcome::Skipped, "no sequences"),
                   cell("dp2", "float32", Outcome::Pass),
                   cell("tp2", "float32", Outcome::Pass),
                   cell("sp", "float32", Outcome::Skipped, "no sequences")};
  for (const char* name : {"one-process-float64", "dp2-float64", "tp2-float64"}) {
    StepView step;
    step.name = name;
    step.kind = "train";
    step.outcome = Outcome::Pass;
    view.steps.push_back(step);
  }
  return view;
}

}  // namespace

TEST(ReportMatrix, HasRowsColumnsAndRemarks) {
  const RunView view = run();
  const Matrix matrix = matrix_of(view);
  EXPECT_EQ(matrix.rows, (std::vector<std::string>{"dp2", "tp2", "sp"}));
  EXPECT_EQ(matrix.columns, (std::vector<std::string>{"float64", "float32"}));
  EXPECT_EQ(matrix_outcome(matrix.at("sp", "float32")), "n/a");
  EXPECT_EQ(matrix_outcome(matrix.at("sp", "float16")), "-");
  EXPECT_EQ(matrix_figures(matrix.at("dp2", "float64")), (std::vector<std::string>{"2.5e-12", "0", "1.25 s"}));
  const auto remarks = matrix_remarks(matrix);
  ASSERT_EQ(remarks.size(), 2u);
  EXPECT_EQ(remarks[0].place, "tp2 float64");
  EXPECT_EQ(remarks[1].place, "sp") << "one reason in all columns is said once";
}

TEST(ReportMatrix, PrintsOnTheTerminal) {
  const std::string text = render_terminal(run(), false, 100);
  EXPECT_THAT(text, HasSubstr("  strategy  float64     loss  weights    time  float32     loss  weights    time\n"
                              "  dp2       Pass     2.5e-12        0  1.25 s  Pass     2.5e-12        0  1.25 s\n"
                              "  tp2       Fail     2.5e-12        0  1.25 s  Pass     2.5e-12        0  1.25 s\n"
                              "  sp        n/a                                n/a\n"));
  EXPECT_THAT(text, HasSubstr("tp2 float64: first at step 3\n"));
  EXPECT_THAT(text, HasSubstr("sp: no sequences\n"));
  EXPECT_THAT(text, Not(HasSubstr("Steps"))) << "all of them passed";
  RunView broken = run();
  broken.steps[0].outcome = Outcome::Error;
  broken.steps[0].reason = "exit code 10";
  EXPECT_THAT(render_terminal(broken, false, 100), HasSubstr("one-process-float64  train  Error"));
}

TEST(ReportMatrix, AppearsInEveryOtherReport) {
  const RunView view = run();
  EXPECT_THAT(render_markdown(view), HasSubstr("| tp2 | Fail | 2.5e-12 | 0 | 1.25 s | Pass |"));
  EXPECT_THAT(html_verdicts(view), HasSubstr("first at step 3"));
  EXPECT_THAT(html_verdicts(view), HasSubstr("2.5e-12"));
  const Json json = render_result_json(view);
  EXPECT_EQ(json["verdicts"][1]["row"], "tp2");
  EXPECT_EQ(json["verdicts"][1]["column"], "float64");
  const RunView back = run_view_of(json);
  EXPECT_EQ(back.verdicts[2].row, "sp");
  EXPECT_EQ(render_terminal(back, false, 100), render_terminal(view, false, 100));
}
