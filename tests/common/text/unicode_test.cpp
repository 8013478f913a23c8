#include "text/unicode.h"

#include <gtest/gtest.h>

#include "base/process.h"
#include "base/text.h"

namespace assay {
namespace {

TEST(Unicode, DecodesOnlyValidUtf8) {
  const auto value = [](std::string_view text) { return code_point_at(text, 0).value; };
  EXPECT_EQ(value("a"), uint32_t{'a'});
  EXPECT_EQ(value("\xc3\xa9"), 0xe9u);
  EXPECT_EQ(value("\xe2\x82\xac"), 0x20acu);
  EXPECT_EQ(value("\xf0\x9f\x98\x80"), 0x1f600u);
  for (const std::string_view bad : {"\x80", "\xc0\x80", "\xc3", "\xc3z", "\xe0\x80\x80", "\xed\xa0\x80",
                                     "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xff", "\xe2\x82"}) {
    EXPECT_EQ(value(bad), kNoCodePoint) << valid_utf8(bad);
    EXPECT_EQ(code_point_at(bad, 0).num_bytes, 1u);
  }
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string text;
    append_utf8(text, c);
    const CodePoint back = code_point_at(text, 0);
    ASSERT_EQ(back.value, c);
    ASSERT_EQ(back.num_bytes, text.size());
  }
  EXPECT_EQ(num_code_points("a\xc3\xa9\xff!"), 4u);
}

// Python's database says what every character is and folds to.
TEST(Unicode, MatchesPythonsClassesAndFolding) {
  const CapturedOutput output =
      capture({.argv = {"/usr/bin/python3", std::string(ASSAY_SOURCE_DIR) + "/tests/peers/tokenizers.py", "unicode"}});
  ASSERT_TRUE(output.status.ok()) << output.err;
  std::string_view rest = output.out;
  int wrong = 0;
  constexpr std::string_view kLetters = "-LNPMSC";  // in the order of CharClass
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    const size_t end = rest.find('\n');
    ASSERT_NE(end, std::string_view::npos);
    std::string folded, line(1, kLetters[static_cast<size_t>(class_of(c))]);
    append_folded(folded, c);
    for (const char byte : folded) line += fmt::format("{:02x}", static_cast<uint8_t>(byte));
    if (line != rest.substr(0, end) && ++wrong < 10)
      ADD_FAILURE() << fmt::format("U+{:04X} ", c) << line << " " << rest.substr(0, end);
    rest.remove_prefix(end + 1);
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace assay
