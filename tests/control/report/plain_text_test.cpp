#include "report/plain_text.h"

#include <gtest/gtest.h>

#include "base/text.h"

using namespace assay;

TEST(PlainText, KeepsOrdinaryText) {
  EXPECT_EQ(plain_text("loss 0.5, 准确率 91 %"), "loss 0.5, 准确率 91 %");
  EXPECT_EQ(plain_text(""), "");
}

TEST(PlainText, RemovesEscapeSequences) {
  EXPECT_EQ(plain_text("\033[31mred\033[0m"), "red");
  EXPECT_EQ(plain_text("\033[38;5;196mx"), "x");
  EXPECT_EQ(plain_text("\033]0;title\atext"), "text");
  EXPECT_EQ(plain_text("\033]8;;http://x\033\\link"), "link");
  EXPECT_EQ(plain_text("a\033"), "a");
  EXPECT_EQ(plain_text("a\033["), "a");
  EXPECT_EQ(plain_text("a\033]never ended"), "anever ended");
  EXPECT_EQ(plain_text("\033cx"), "x");
}

TEST(PlainText, ReplacesWhatControlsTerminalsOrBreaksXml) {
  EXPECT_EQ(plain_text("a\nb\tc\rd"), "a b c d");
  EXPECT_EQ(plain_text(std::string_view("a\0b", 3)),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(plain_text("\x7F"), "\xEF\xBF\xBD");
  EXPECT_EQ(plain_text("\xC2\x9B"
                       "31m"),
            "\xEF\xBF\xBD"
            "31m");  // the one-character CSI
  EXPECT_EQ(plain_text("a\xE2\x80\xAE"
                       "b"),
            "a\xEF\xBF\xBD"
            "b");                                         // right-to-left override
  EXPECT_EQ(plain_text("\xEF\xBF\xBE"), "\xEF\xBF\xBD");  // U+FFFE
  EXPECT_EQ(plain_text("\xFF\xC3"), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(PlainText, CutsWhatIsTooLong) {
  const std::string text = plain_text(std::string(3 * kMaxPlainBytes, 'x'));
  EXPECT_EQ(text.size(), kMaxPlainBytes + 3);
  EXPECT_TRUE(text.ends_with("\xE2\x80\xA6"));
}

TEST(PlainText, KeepsTheLastStateOfAProgressBar) {
  EXPECT_EQ(plain_log_line(" 10%\r 50%\r100% done"), "100% done");
  EXPECT_EQ(plain_log_line("windows line\r"), "windows line");
  EXPECT_EQ(plain_log_line("\r\r"), "");
}

TEST(PlainText, WrapsAtBlanks) {
  EXPECT_EQ(wrap_text("the loss is not a number", 10), (std::vector<std::string>{"the loss", "is not a", "number"}));
  EXPECT_EQ(wrap_text("", 10), std::vector<std::string>{""});
  EXPECT_EQ(wrap_text("abcdefghij", 4), (std::vector<std::string>{"abcd", "efgh", "ij"}));
  EXPECT_EQ(wrap_text("损失不是数字", 5), (std::vector<std::string>{"损失", "不是", "数字"}));
  EXPECT_EQ(wrap_text("损失", 0), (std::vector<std::string>{"损", "失"}));  // never an endless loop
}

TEST(PlainText, ClipsToColumns) {
  EXPECT_EQ(clip_text("abcdef", 6), "abcdef");
  EXPECT_EQ(clip_text("abcdef", 4), "abc…");
  EXPECT_EQ(clip_text("损失不是", 6), "损失…");
  EXPECT_EQ(clip_text("abc", 0), "");
}

TEST(PlainText, CleansAnyBytes) {
  uint32_t state = 1;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int i = 0; i < 40; ++i) {
      state = state * 1664525 + 1013904223;
      bytes += static_cast<char>(state >> 24);
    }
    for (const std::string& text : {plain_text(bytes), plain_log_line(bytes)}) {
      EXPECT_EQ(text, valid_utf8(text));
      for (char c : text) ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
      for (const std::string& line : wrap_text(text, 7)) ASSERT_LE(display_width(line), 7u);
      ASSERT_LE(display_width(clip_text(text, 9)), 9u);
    }
  }
}
