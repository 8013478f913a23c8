#include "base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace assay;

TEST(Text, PrintsFloatsAsPythonDoes) {
  // Values from Python 3: repr(x).
  EXPECT_EQ(python_float(1), "1.0");
  EXPECT_EQ(python_float(0.0), "0.0");
  EXPECT_EQ(python_float(-0.0), "-0.0");
  EXPECT_EQ(python_float(0.1), "0.1");
  EXPECT_EQ(python_float(7e-06), "7e-06");
  EXPECT_EQ(python_float(0.0001), "0.0001");
  EXPECT_EQ(python_float(0.00009999), "9.999e-05");
  EXPECT_EQ(python_float(1e15), "1000000000000000.0");
  EXPECT_EQ(python_float(1e16), "1e+16");
  EXPECT_EQ(python_float(1.5e300), "1.5e+300");
  EXPECT_EQ(python_float(5e-324), "5e-324");
  EXPECT_EQ(python_float(1794771785.339754), "1794771785.339754");
  EXPECT_EQ(python_float(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(python_float(9007199254740993.0), "9007199254740992.0");
  EXPECT_EQ(python_float(std::nan("")), "nan");
  EXPECT_EQ(python_float(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(Text, SplitsTrimsAndJoins) {
  EXPECT_EQ(split("a|b||", '|'), (std::vector<std::string>{"a", "b", "", ""}));
  EXPECT_EQ(split("", '|'), std::vector<std::string>{""});
  EXPECT_EQ(trim(" \t x y \r\n"), "x y");
  EXPECT_EQ(trim("   "), "");
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
}

TEST(Text, FindsTyposAndNothingElse) {
  const std::vector<std::string> keys = {"max_steps", "logging_freq", "eval_freq", "seed"};
  EXPECT_EQ(nearest("max_step", keys), "max_steps");
  EXPECT_EQ(nearest("Max_Stesp", keys), "max_steps");
  EXPECT_EQ(nearest("sede", keys), "seed");
  EXPECT_EQ(nearest("completely_different", keys), std::nullopt);
  EXPECT_EQ(nearest("", {}), std::nullopt);
  EXPECT_EQ(nearest(std::string(1'000'000, 'x'), keys), std::nullopt);
}

TEST(Text, ReadsBooleans) {
  for (const char* yes : {"yes", "TRUE", "t", "Y", "1"}) EXPECT_EQ(parse_bool(yes), true) << yes;
  for (const char* no : {"no", "False", "f", "N", "0"}) EXPECT_EQ(parse_bool(no), false) << no;
  for (const char* bad : {"", "on", "2", "yes ", "null"}) EXPECT_EQ(parse_bool(bad), std::nullopt) << bad;
}

TEST(Text, ReadsNumbers) {
  EXPECT_EQ(parse_int("42"), 42);
  EXPECT_EQ(parse_int("+42"), 42);
  EXPECT_EQ(parse_int("-1"), -1);
  for (const char* bad : {"", " 1", "1 ", "1.0", "0x10", "+-1", "99999999999999999999"})
    EXPECT_EQ(parse_int(bad), std::nullopt) << bad;
  EXPECT_EQ(parse_double("1e-3"), 0.001);
  EXPECT_EQ(parse_double("1e-3x"), std::nullopt);
}

TEST(Text, QuotesReadablyForShells) {
  EXPECT_EQ(shell_line({"echo", "plain-1.0", "two words", "it's", ""}), "echo plain-1.0 'two words' 'it'\\''s' ''");
}

TEST(Text, ReplacesInvalidUtf8) {
  EXPECT_EQ(valid_utf8("h\xc3\xa9llo \xe4\xbd\xa0"), "h\xc3\xa9llo \xe4\xbd\xa0");
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(valid_utf8("\xc0\xaf"), "\xEF\xBF\xBD\xEF\xBF\xBD");       // overlong
  EXPECT_EQ(valid_utf8("\xed\xa0\x80").substr(0, 3), "\xEF\xBF\xBD");  // surrogate
  EXPECT_EQ(valid_utf8("\xe4\xbd"), "\xEF\xBF\xBD\xEF\xBF\xBD");       // cut
}

TEST(Text, CountsWideCharactersInTheWidth) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("\xe4\xbd\xa0\xe5\xa5\xbd"), 4u);
}
