#include "report/escape.h"

#include <gtest/gtest.h>

using namespace assay;

TEST(Escape, RemovesTheMeaningOfMarkup) {
  EXPECT_EQ(escape_markup("<b a=\"1\" c='2'>&amp;</b>"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;&lt;/b&gt;");
  EXPECT_EQ(escape_markup("]]>"), "]]&gt;");
  EXPECT_EQ(escape_markup("\x01"), "\xEF\xBF\xBD");
}

TEST(Escape, RemovesTheMeaningOfMarkdown) {
  EXPECT_EQ(escape_markdown("a|b"), "a\\|b");
  EXPECT_EQ(escape_markdown("**x** _y_ `z` [l](u) <i>"), "\\*\\*x\\*\\* \\_y\\_ \\`z\\` \\[l\\](u) &lt;i&gt;");
  EXPECT_EQ(escape_markdown("\\|"), "\\\\\\|");
  EXPECT_EQ(escape_markdown("thanks @someone"), "thanks &#64;someone");
  EXPECT_EQ(escape_markdown("two\nlines"), "two lines");
}

TEST(Escape, KeepsLinesFromClosingTheirFence) {
  EXPECT_EQ(code_fence({"plain"}), "```");
  EXPECT_EQ(code_fence({"```", "a ````` b"}), "``````");
  EXPECT_EQ(code_fence({}), "```");
}

TEST(Escape, KeepsJsonInItsScriptElement) {
  const Json value = {{"a", "</script><!--&\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAA\xFF"}};
  const std::string text = json_for_script(value);
  EXPECT_EQ(text.find_first_of("<>&"), std::string::npos);
  EXPECT_NE(text.find("\\u2028\\u2029\xE2\x80\xAA"), std::string::npos);
  // It is still the same value, except for the byte that was no text.
  EXPECT_EQ(parse_json(text, "test")["a"], "</script><!--&\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAA\xEF\xBF\xBD");
}
