#include "text/sentences.h"

#include <gtest/gtest.h>

#include <string>

namespace assay {
namespace {

TEST(Sentences, EndAtMarksAndLines) {
  using List = std::vector<std::string_view>;
  EXPECT_EQ(sentences_of("One. Two!  Is it 3.5? \"Yes.\" (No.) e"),
            (List{"One.", "Two!", "Is it 3.5?", "\"Yes.\"", "(No.)", "e"}));
  EXPECT_EQ(sentences_of("a title\n\n  text without end\n"), (List{"a title", "text without end"}));
  EXPECT_EQ(sentences_of("你好。再见！"), (List{"你好。", "再见！"}));
  EXPECT_EQ(sentences_of("www.example.org"), (List{"www.example.org"}));
  EXPECT_TRUE(sentences_of(" \n ").empty());
}

}  // namespace
}  // namespace assay
