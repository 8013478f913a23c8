#include "config/listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/yaml.h"
#include "temp_home.h"

using namespace assay;
using testing::HasSubstr;
using testing::Not;

namespace {

const Paint kPlain = [](std::string_view text, Colour) { return std::string(text); };

std::string listing(std::vector<Setting> sets) {
  const TempHome home;
  home.write("cases/tiny/case.yaml", kTinyCase);
  ResolveRequest request = home.request("tiny");
  request.sets = std::move(sets);
  return render_config(resolve_case(request), kPlain);
}

}  // namespace

TEST(Listing, PrintsOneLinePerValueWithItsPlace) {
  const std::string text = listing({});
  EXPECT_THAT(text, testing::StartsWith("tiny  closed division  hash "));
  // The first column is as wide as the longest key there is.
  EXPECT_THAT(
      text,
      HasSubstr("\nModel.width                                    16                       cases/tiny/case.yaml:12\n"));
  EXPECT_THAT(text, HasSubstr("\nEngine.run_mode                                step                     default\n"));
  EXPECT_THAT(text, HasSubstr("\nEngine.accumulate_steps                        1                        derived: "
                              "local_batch_size / micro_batch_size\n"));
  EXPECT_THAT(text, HasSubstr("\nmutable.1                                      Engine.mix_precision"));
  EXPECT_THAT(text, Not(HasSubstr("Changed")));
}

TEST(Listing, ChangesComeLast) {
  const std::string text = listing({"Global.local_batch_size=8", "Model.blocks.2=7"});
  EXPECT_THAT(text, testing::StartsWith("tiny  open division"));
  EXPECT_THAT(text,
              testing::EndsWith(
                  "\nChanged\n"
                  "  Global.local_batch_size: 32 -> 8  --set Global.local_batch_size=8\n"
                  "  Model.blocks: [1, 2, 3] -> [1, 2, 7]  --set Model.blocks.2=7  not mutable: the result is open\n"));
}

TEST(Listing, PrintsValuesThatReadBack) {
  for (const char* text :
       {"plain", "two words", "1",    "1e5",  "true", "null", "~",  "",   " x", "a: b", "- a",  "#c",   "[a]", "it's",
        "\"q\"", "a#b",       "a\nb", "模型", "-",    "?",    "x:", "*a", "&a", "!t",   "0x10", ".inf", "a, b"}) {
    const Value value = Value::string(text);
    const Value back = parse_yaml("[" + yaml_text(value) + "]", "f", "case");
    EXPECT_TRUE(back.items().at(0).same_as(value)) << yaml_text(value);
  }
  EXPECT_EQ(yaml_text(Value::string("a\x01")), "\"a\\u0001\"");
  EXPECT_EQ(yaml_text(Value::string("plain")), "plain");
  EXPECT_EQ(yaml_text(Value::of({1, "x", "2", nullptr})), "[1, x, \"2\", null]");
}

TEST(Listing, ShowsTypeDefaultAndMeaningOfTheSchema) {
  const std::string text = render_schema(kPlain);
  EXPECT_THAT(text, testing::ContainsRegex("Engine\\.max_steps +integer or null +null +Optimizer steps after which"));
  EXPECT_THAT(
      text,
      testing::ContainsRegex(
          "Optimizer\\.name +text +required +The rule\\. \\(one of SGD, Momentum, Adam, AdamW, LAMB, Adagrad\\)"));
  EXPECT_EQ(schema_json()[0]["key"], "model");
}
