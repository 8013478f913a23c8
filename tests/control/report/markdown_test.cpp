#include "report/markdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "sample_run.h"

using namespace assay;
using testing::HasSubstr;
using testing::Not;

TEST(Markdown, ListsCasesInFlagPerfsColumns) {
  EXPECT_EQ(markdown_case_table(sample_run().case_results),
            "| config | precision | fix_hp | e2e_time | p_whole | p_train | p_core | acc | mem (used / total) | MFU |\n"
            "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
            "| resnet:libtorch:cpu:1:1:1 | - | - | 98.250 | 2000 images/s | 2481 images/s | - | 0.9132 | 1.50 GiB | - "
            "|\n");
}

TEST(Markdown, WritesAPassedRun) {
  const std::string text = render_markdown(sample_run());
  EXPECT_TRUE(
      text.starts_with("# Pass: demo: resnet on Fashion-MNIST\n\nRun 20261115-194305-demo, started "
                       "2026-11-15 19:43:05 UTC, took 100.5 s.\n"));
  EXPECT_THAT(text, HasSubstr("| accuracy reaches its target | Pass | 0.9132 &gt;= 0.9000 |\n"));
  EXPECT_THAT(text, HasSubstr("| 1 | train | Pass | 80.0 s | 1.50 GiB |  |\n"));
  EXPECT_THAT(text, HasSubstr("| 2 | evaluate | Pass | 20.0 s | - |  |\n"));
  EXPECT_THAT(text, HasSubstr("| machine | energy meter | - |\n"));
}

TEST(Markdown, ShowsTheLastLinesOfAFailedRun) {
  const std::string text = render_markdown(failing_run());
  EXPECT_THAT(text, HasSubstr("# Error: "));
  EXPECT_THAT(text, HasSubstr("## Last lines of train\n\n```text\nstep 10 loss 2.5\nout of memory\n```\n"));
}

TEST(Markdown, WritesAnEmptyRun) {
  EXPECT_EQ(render_markdown(empty_run()),
            "# Invalid: 20261115-210000-empty\n\nthe plan has no step\n\nRun 20261115-210000-empty, started "
            "2026-11-15 19:43:05 UTC, took -.\n");
}

TEST(Markdown, EscapesForeignText) {
  const std::string text = render_markdown(hostile_run());
  size_t columns = 0;
  bool in_table = false;
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with("|")) {
      in_table = false;
      continue;
    }
    size_t bars = 0;
    for (size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\') ? 1 : 0;
    if (!in_table) columns = bars;
    in_table = true;
    EXPECT_EQ(bars, columns) << line;
  }
  // Outside the fence of the log there is no markup; inside, the fence is longer than any in the log.
  EXPECT_THAT(text.substr(0, text.find("````text")), Not(HasSubstr("<img")));
  EXPECT_THAT(text, HasSubstr("````text"));
}
