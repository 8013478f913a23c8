#include "import/flagperf/yaml_writer.h"

#include <gtest/gtest.h>

#include <random>

#include "base/text.h"
#include "config/yaml.h"

using namespace assay;

TEST(YamlWriter, WritesLines) {
  YamlWriter yaml;
  yaml.comment("made\nby hand");
  yaml.entry("a", Value::string("text"));
  yaml.section("b");
  yaml.entry("null", Value::real(1e-5), 1, "a remark\nof two lines");
  yaml.item(Value::string("1"), 1);
  Value map = Value::map();
  map.set("x y", Value::list());
  map.set_standalone(true);
  yaml.entry("m", map);
  EXPECT_EQ(yaml.text(),
            "# made by hand\na: text\nb:\n  \"null\": 1e-05  # a remark of two lines\n  - \"1\"\n"
            "m: {_inherited_: False, \"x y\": []}\n");
}

TEST(YamlWriter, WritesTextThatReadsBack) {
  std::mt19937 random(3);
  const std::string alphabet = " ab1.:#?-{}[],&*!|>'\"%@`\\\n\t\x01\x7f\xc3\xa9~<=/_";
  std::vector<std::string> texts = {"",  "yes",  "no",   "null", "~", "1",    "1e5", "0x1f", "True", "-",
                                    "?", "a: b", "a #b", "- a",  "[", "\r\n", "...", "---",  "=",    "+1"};
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (size_t k = random() % 8; k > 0; --k) text += alphabet[random() % alphabet.size()];
    if (text != "<<") texts.push_back(valid_utf8(text));  // no key of ours
  }
  for (const std::string& text : texts) {
    Value map = Value::map();
    map.set("key", Value::string(text));
    map.set(text, Value::integer(1));
    Value list = Value::list();
    list.items() = {map, Value::string(text)};
    YamlWriter yaml;
    yaml.entry("v", list, 0, text);
    const Value read = parse_yaml(yaml.text(), "f", "case");
    ASSERT_TRUE(read.child("v")->same_as(list)) << yaml.text();
  }
}
