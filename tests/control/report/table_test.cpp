#include "report/table.h"

#include <gtest/gtest.h>

#include "base/error.h"

using namespace assay;

TEST(Table, AlignsColumns) {
  Table table({{.title = "#", .align = Table::Align::Right}, {.title = "name"}, {.title = "time"}});
  table.add({"1", "train", "5 s"});
  table.add({"10", "evaluate"});
  EXPECT_EQ(table.num_rows(), 2u);
  EXPECT_EQ(table.text({}),
            " #  name      time\n"
            " 1  train     5 s\n"
            "10  evaluate\n");
}

TEST(Table, CountsWideCharactersAsTwoColumns) {
  Table table({{.title = "名"}, {.title = "x"}});
  table.add({"损失", "1"});
  table.add({"loss", "2"});
  table.add({"损", "3"});
  EXPECT_EQ(table.text({.titles = false}), "损失  1\nloss  2\n损    3\n");
}

TEST(Table, IgnoresColoursInWidths) {
  Table table({{.title = "a"}, {.title = "b"}});
  table.add({Cell("Pass", Colour::Green), "1"});
  table.add({Cell("Skipped", Colour::Dim), "2"});
  EXPECT_EQ(table.text({.colours = true, .titles = false}), "\033[32mPass\033[0m     1\n\033[2mSkipped\033[0m  2\n");
  EXPECT_EQ(table.text({.colours = false, .titles = false}), "Pass     1\nSkipped  2\n");
}

TEST(Table, WrapsTheColumnThatMay) {
  Table table({{.title = "name"}, {.title = "reason", .wraps = true}});
  table.add({"train", "the loss is not a number at step 870"});
  EXPECT_EQ(table.text({.width = 30, .indent = 2}),
            "  name   reason\n"
            "  train  the loss is not a\n"
            "         number at step 870\n");
  EXPECT_EQ(table.text({.width = 0, .titles = false}), "train  the loss is not a number at step 870\n");
}

TEST(Table, ShowsEverythingOnANarrowTerminal) {
  Table table({{.title = "name"}, {.title = "reason", .wraps = true}});
  table.add({"a-very-long-step-name", "word1 word2 word3 word4"});
  const std::string text = table.text({.width = 10});
  for (const char* word : {"a-very-long-step-name", "word1", "word4"}) EXPECT_NE(text.find(word), std::string::npos);
}

TEST(Table, RemovesTerminalControlFromForeignText) {
  Table table({{.title = "name"}});
  table.add({"\033[2Jevil\nline"});
  EXPECT_EQ(table.text({.titles = false}), "evil line\n");
}

TEST(Table, RejectsMoreCellsThanColumns) {
  Table table({{.title = "name"}});
  EXPECT_THROW(table.add({"a", "b"}), InternalError);
}
