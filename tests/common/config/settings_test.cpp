#include "config/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "temp_home.h"

using namespace assay;
using testing::HasSubstr;

namespace {

std::string layer(const Setting& setting, const char* effective = "{}") {
  return to_line(layer_of(setting, Value::of(Json::parse(effective))).to_json());
}

}  // namespace

TEST(Settings, ReadsValuesAsYaml) {
  EXPECT_EQ(layer("a.b=1"), R"({"a":{"b":1}})");
  EXPECT_EQ(layer("a=null"), R"({"a":null})");
  EXPECT_EQ(layer("a='null'"), R"({"a":"null"})");
  EXPECT_EQ(layer("a=''"), R"({"a":""})");
  EXPECT_EQ(layer("a=1e-3"), R"({"a":0.001})");
  EXPECT_EQ(layer("a=[1, x]"), R"({"a":[1,"x"]})");
  EXPECT_EQ(layer("a={b: {c: true}}"), R"({"a":{"b":{"c":true}}})");
  EXPECT_EQ(layer("a=b=c"), R"({"a":"b=c"})");
  EXPECT_EQ(layer(" a = 1 "), R"({"a":1})");
}

TEST(Settings, ChangesOneItemOfAList) {
  const char* effective = R"({"m": {"blocks": [1, 2, 3]}, "a": [{"b": [5, 6]}]})";
  EXPECT_EQ(layer("m.blocks.1=9", effective), R"({"m":{"blocks":[1,9,3]}})");
  EXPECT_EQ(layer("m.blocks=[7]", effective), R"({"m":{"blocks":[7]}})");
  EXPECT_EQ(layer("a.0.b.1=x", effective), R"({"a":[{"b":[5,"x"]}]})");
  EXPECT_EQ(layer("a.0.c=1", effective), R"({"a":[{"b":[5,6],"c":1}]})");
  for (const char* text : {"m.blocks.3=1", "m.blocks.-1=1", "m.blocks.x=1", "m.blocks.0.y=1"}) {
    EXPECT_THROW(layer(text, effective), ConfigError) << text;
  }
  EXPECT_THAT(error_of([&] { layer("m.blocks.3=1", effective); }),
              HasSubstr("--set m.blocks.3=1: '3' is not an index of a list of 3"));
}

TEST(Settings, RejectsWhatIsNotAnAssignment) {
  for (const char* text : {"", "a", "=1", " =1", "a=", "a= ", "a..b=1", ".a=1", "a.=1"}) {
    EXPECT_THROW(layer(text), UsageError) << text;
  }
  EXPECT_THROW(layer(std::string(100, 'a') + std::string(500, '.') + "=1"), UsageError);
  std::string deep;
  for (int i = 0; i < 50; ++i) deep += "a.";
  EXPECT_THROW(layer(deep + "a=1"), UsageError);
  EXPECT_THROW(layer("a=[1"), ConfigError);
  EXPECT_THROW(layer("a=\xff"), ConfigError);
}

TEST(Settings, SurviveMutations) {
  std::mt19937 random(7);
  const std::string seed = "m.blocks.1={a: [1, 2], b: 'x'}";
  const std::string bytes = "{}[]:,.=&*'\"0-\t\n\xff";
  const TempHome home;
  home.write("cases/tiny/case.yaml", kTinyCase);
  for (int round = 0; round < 1500; ++round) {
    std::string text = round % 2 ? seed : "Model.blocks.1=3";
    for (int edit = 1 + static_cast<int>(random() % 4); edit > 0; --edit) {
      const size_t at = random() % text.size();
      if (random() % 2) {
        text[at] = bytes[random() % bytes.size()];
      } else {
        text.insert(at, 1, bytes[random() % bytes.size()]);
      }
    }
    ResolveRequest request = home.request("tiny");
    request.sets = {Setting(text)};
    try {
      (void)resolve_case(request).describe();
    } catch (const UsageError&) {
    } catch (const ConfigError&) {
    }
  }
}
