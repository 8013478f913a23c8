#include "report/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "sample_run.h"

using namespace assay;
using testing::HasSubstr;
using testing::Not;

TEST(Terminal, PrintsAPassedRun) {
  EXPECT_EQ(render_terminal(sample_run(), false, 100),
            "Pass  demo: resnet on Fashion-MNIST\n"
            "  run 20261115-194305-demo, started 2026-11-15 19:43:05 UTC, took 100.5 s\n"
            "\n"
            "Steps\n"
            "  #  step      kind      outcome    time  reason\n"
            "  1  train     train     Pass     80.0 s\n"
            "  2  evaluate  evaluate  Pass     20.0 s\n"
            "\n"
            "Verdicts\n"
            "  verdict                      outcome  reason\n"
            "  accuracy reaches its target  Pass     0.9132 >= 0.9000\n"
            "\n"
            "Result of resnet:libtorch:cpu:1:1:1\n"
            "  accuracy         0.9132         target 0.9000, reached\n"
            "  throughput       2481 images/s  training, evaluation not counted\n"
            "  end-to-end time  98.2 s\n"
            "  peak memory      1.50 GiB\n");
}

TEST(Terminal, EndsAFailedRunWithItsLastLines) {
  const std::string text = render_terminal(failing_run(), false, 100);
  EXPECT_TRUE(text.starts_with("Error  demo"));
  EXPECT_THAT(text, HasSubstr("\n  step 1 (train) broke\n"));
  EXPECT_THAT(text, HasSubstr("killed by signal 9 (Killed); 3 attempts"));
  EXPECT_THAT(text, HasSubstr("  2  evaluate  evaluate  Skipped       -  needs step 1\n"));
  EXPECT_THAT(text, HasSubstr("  accuracy         -              target 0.9000, not reached\n"));
  EXPECT_TRUE(
      text.ends_with("\nLast lines of steps/1-train (killed by signal 9)\n"
                     "  | step 10 loss 2.5\n"
                     "  | out of memory\n"));
}

TEST(Terminal, PrintsAnEmptyRun) {
  const std::string text = render_terminal(empty_run(), false, 100);
  EXPECT_TRUE(text.starts_with("Invalid"));
  EXPECT_THAT(text, HasSubstr("the plan has no step"));
  EXPECT_THAT(text, HasSubstr("took -"));
  EXPECT_THAT(text, HasSubstr("Steps\n  none\n"));
}

TEST(Terminal, ColoursByTheOutcome) {
  const std::string text = render_terminal(failing_run(), true, 100);
  EXPECT_THAT(text, HasSubstr("\033[31mError\033[0m"));
  EXPECT_THAT(text, HasSubstr("\033[33mInvalid\033[0m"));
  EXPECT_THAT(text, HasSubstr("\033[2mSkipped\033[0m"));
  EXPECT_THAT(render_terminal(sample_run(), true, 100), HasSubstr("\033[32mPass\033[0m"));
  EXPECT_THAT(render_terminal(hostile_run(), false, 100), Not(HasSubstr("\033")));
}

TEST(Terminal, PrintsSeveralCasesAsATable) {
  RunView run = sample_run();
  run.case_results.push_back(shown_result({{"final_accuracy", nullptr}, {"p_whole", 10.0}}));
  const std::string text = render_terminal(run, false, 120);
  EXPECT_THAT(text, HasSubstr("resnet:libtorch:cpu:1:1:1    0.9132  0.9000  2481 images/s    98.2 s     1.50 GiB\n"));
  EXPECT_THAT(text, HasSubstr("case 2                            -       -   10 samples/s         -            -\n"));
}

TEST(Terminal, WrapsLongReasons) {
  RunView run = failing_run();
  run.steps[0].reason = "原因 " + std::string(30, 'x') + " and many more words about what went wrong in this step";
  run.steps[0].last_lines = {std::string(500, 'y')};
  for (const std::string& line : split(render_terminal(run, false, 80), '\n')) {
    EXPECT_LE(display_width(line), 80u) << line;
  }
}

TEST(Terminal, PrintsOnlyTheLastLinesOfALongLog) {
  RunView run = failing_run();
  run.steps[0].last_lines.clear();
  for (int i = 0; i < 100; ++i) run.steps[0].last_lines.push_back("line " + std::to_string(i));
  const std::string text = render_terminal(run, false, 80);
  EXPECT_THAT(text, HasSubstr("| line 80\n"));
  EXPECT_THAT(text, Not(HasSubstr("| line 79\n")));
}
