#include "datasets/text_layout.h"

#include <gtest/gtest.h>

#include "base/text.h"

using namespace assay;

TEST(TextLayout, HoldsOutATenthByContent) {
  int held_out = 0;
  for (int i = 0; i < 10'000; ++i) held_out += is_held_out("document " + std::to_string(i)) ? 1 : 0;
  EXPECT_NEAR(held_out, 1000, 100);  // three standard deviations are 90
  // SHA-256 of "" begins with e3b0c442 = 3820012610, that of "abc" with ba7816bf = 3128432319.
  EXPECT_TRUE(is_held_out(""));
  EXPECT_FALSE(is_held_out("abc"));
}

TEST(TextLayout, MakesTextOfAnyBytes) {
  EXPECT_EQ(as_utf8("plain"), "plain");
  EXPECT_EQ(as_utf8("caf\xC3\xA9"), "caf\xC3\xA9");
  EXPECT_EQ(as_utf8("caf\xE9"), "caf\xC3\xA9");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(valid_utf8(as_utf8(all)), as_utf8(all));
}

TEST(TextLayout, WritesOneObjectPerLine) {
  const TempFolder folder;
  TextWriter writer(folder.path());
  writer.add("two\nlines \"quoted\"", 1);
  writer.add("abc");
  writer.add("");
  EXPECT_EQ(writer.finish(), (Json{{"train", 2}, {"test", 1}}));
  EXPECT_EQ(read_file(folder.path() / "train.jsonl"),
            "{\"text\":\"two\\nlines \\\"quoted\\\"\",\"label\":1}\n{\"text\":\"abc\"}\n");
  EXPECT_EQ(read_file(folder.path() / "test.jsonl"), "{\"text\":\"\"}\n");
}
