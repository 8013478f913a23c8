#include "config/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temp_home.h"

using namespace assay;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

const Json kJson = Json::parse(R"({"i": 3, "d": 0.5, "whole": 2, "b": true, "s": "x", "n": null, "li": [1, 2],
  "ls": ["a"], "big": 18446744073709551615, "inf": "Infinity", "sec": {"a": 1, "typo": 2}})");

}  // namespace

TEST(Reader, ReadsTypesWithDefaults) {
  Reader reader(kJson, "Engine");
  EXPECT_EQ(reader.get_int("i"), 3);
  EXPECT_EQ(reader.get_int("absent", 7), 7);
  EXPECT_EQ(reader.get_int("n", 7), 7);
  EXPECT_EQ(reader.get_optional_int("n"), std::nullopt);
  EXPECT_EQ(reader.get_optional_int("i"), 3);
  EXPECT_EQ(reader.get_double("d"), 0.5);
  EXPECT_EQ(reader.get_double("whole"), 2.0);
  EXPECT_EQ(reader.get_double("inf"), INFINITY);
  EXPECT_EQ(reader.get_optional_double("absent"), std::nullopt);
  EXPECT_TRUE(reader.get_bool("b"));
  EXPECT_FALSE(reader.get_bool("absent", false));
  EXPECT_EQ(reader.get_string("s"), "x");
  EXPECT_EQ(reader.get_string("n", "y"), "y");
  EXPECT_EQ(reader.get_optional_string("s"), "x");
  EXPECT_THAT(reader.get_ints("li"), ElementsAre(1, 2));
  EXPECT_THAT(reader.get_doubles("li"), ElementsAre(1.0, 2.0));
  EXPECT_THAT(reader.get_strings("ls"), ElementsAre("a"));
  EXPECT_THAT(reader.get_ints("absent", {4}), ElementsAre(4));
  EXPECT_EQ(reader.get_choice("s", {"w", "x"}, "w"), "x");
}

TEST(Reader, NamesPathAndValueOfWrongTypes) {
  Reader reader(kJson, "Engine");
  EXPECT_THAT(error_of([&] { reader.get_int("d"); }), HasSubstr("Engine.d must be an integer, found 0.5"));
  EXPECT_THAT(error_of([&] { reader.get_int("big"); }), HasSubstr("must be an integer"));
  EXPECT_THAT(error_of([&] { reader.get_double("s"); }), HasSubstr("Engine.s must be a number, found \"x\""));
  EXPECT_THAT(error_of([&] { reader.get_bool("i"); }), HasSubstr("true or false"));
  EXPECT_THAT(error_of([&] { reader.get_string("i"); }), HasSubstr("must be text"));
  EXPECT_THAT(error_of([&] { reader.get_ints("ls"); }), HasSubstr("list of integers"));
  EXPECT_THAT(error_of([&] { reader.get_ints("i"); }), HasSubstr("list of integers"));
  EXPECT_THAT(error_of([&] { reader.get_strings("li"); }), HasSubstr("list of text"));
  EXPECT_THAT(error_of([&] { reader.get_int("absent"); }), HasSubstr("Engine.absent is required"));
  EXPECT_THAT(error_of([&] { reader.get_int("n"); }), HasSubstr("Engine.n is required"));
  EXPECT_THAT(error_of([&] { reader.section("i"); }), HasSubstr("Engine.i must be a section"));
  EXPECT_THAT(error_of([&] {
                reader.get_choice("s", {"xx", "yyyyy"}, "xx");
              }),
              AllOf(HasSubstr("one of xx, yyyyy"), HasSubstr("did you mean 'xx'")));
}

TEST(Reader, FinishRefusesWhatNobodyRead) {
  Reader reader(kJson, "Engine");
  Reader section = reader.section("sec");
  section.get_int("a");
  section.get_int("type", 1);
  EXPECT_THAT(error_of([&] { section.finish(); }),
              AllOf(HasSubstr("Engine.sec.typo is not known"), HasSubstr("did you mean 'type'")));
  section.ignore("typo");
  section.finish();
  EXPECT_THROW(reader.finish(), ConfigError);
  for (const char* key : {"i", "d", "whole", "b", "s", "li", "ls", "big", "inf"}) reader.ignore(key);
  reader.finish();  // "n" is null: not set, so nobody has to read it
}

TEST(Reader, TreatsAnAbsentSectionAsEmpty) {
  Reader reader(kJson);
  EXPECT_EQ(reader.section("absent").get_int("x", 5), 5);
  EXPECT_EQ(reader.section("n").get_int("x", 5), 5);
}

TEST(Reader, NamesThePlaceOfAnError) {
  const auto origins =
      std::make_shared<const Origins>(Origins{{"Model.width", "case.yaml:7"}, {"Model.name", "case.yaml:5"}});
  const Json json = {{"name", "m"}, {"width", "wide"}};
  Reader reader(json, "Model", origins);
  EXPECT_THAT(error_of([&] { reader.get_int("width"); }), testing::StartsWith("case.yaml:7: Model.width"));
  EXPECT_THAT(error_of([&] { reader.fail("width", "must be even"); }),
              HasSubstr("case.yaml:7: Model.width must be even, found \"wide\""));
  EXPECT_THAT(error_of([&] { reader.get_int("depth"); }), testing::StartsWith("case.yaml:5: Model.depth is required"));
}
