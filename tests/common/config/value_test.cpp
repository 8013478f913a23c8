#include "config/value.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

using namespace assay;

namespace {

Value sample() { return Value::of(Json::parse(R"({"a": {"b": [{"c": 1}, {"c": 2.5}], "x.y": true}, "n": null})")); }

}  // namespace

TEST(Value, FindsByDottedPathThroughMapsAndLists) {
  const Value value = sample();
  EXPECT_EQ(value.find("a.b.0.c")->as_int(), 1);
  EXPECT_EQ(value.find("a.b.1.c")->as_double(), 2.5);
  EXPECT_TRUE(value.find("n")->is_null());
  EXPECT_EQ(value.find(""), &value);
  for (const char* absent : {"a.b.2", "a.b.-1", "a.b.x", "a.c", "n.x", "a.b.0.c.d", "a..b", "."}) {
    EXPECT_EQ(value.find(absent), nullptr) << absent;
  }
  // A key with a dot is reached as a child only.
  EXPECT_EQ(value.find("a.x.y"), nullptr);
  EXPECT_TRUE(value.find("a")->child("x.y")->as_bool());
}

TEST(Value, CreatesMapsAndKeepsOrderBySetPath) {
  Value value = Value::map();
  value.set_path("b.c", Value::integer(1));
  value.set_path("a", Value::integer(2));
  value.set_path("b.d", Value::integer(3));
  EXPECT_EQ(to_line(value.to_json()), R"({"b":{"c":1,"d":3},"a":2})");
  value.set_path("a.x", Value::null());
  EXPECT_EQ(to_line(value.to_json()), R"({"b":{"c":1,"d":3},"a":{"x":null}})");
  value.erase("b");
  EXPECT_EQ(to_line(value.to_json()), R"({"a":{"x":null}})");
}

TEST(Value, RoundTripsJsonWithTypes) {
  const Json json = Json::parse(R"({"i": 1, "d": 1.0, "s": "1", "b": false, "l": [1, [2]], "m": {}, "n": null})");
  EXPECT_EQ(Value::of(json).to_json().dump(), json.dump());
}

TEST(Value, ComparesValuesAndTypesNotOriginsNorOrder) {
  EXPECT_TRUE(sample().same_as(sample()));
  EXPECT_TRUE(Value::of({{"a", 1}, {"b", 2}}).same_as(Value::of({{"b", 2}, {"a", 1}}, {"case", "f", 3})));
  EXPECT_FALSE(Value::integer(1).same_as(Value::real(1)));
  EXPECT_FALSE(Value::of({{"a", 1}}).same_as(Value::of({{"a", 2}})));
  EXPECT_FALSE(Value::of({1, 2}).same_as(Value::of({1, 2, 3})));
  EXPECT_FALSE(Value::null().same_as(Value::string("")));
  EXPECT_TRUE(Value::real(std::nan("")).same_as(Value::real(std::nan(""))));
}

TEST(Value, PrintsReadableText) {
  EXPECT_EQ(Value::string("ten").text(), "'ten'");
  EXPECT_EQ(Value::of({1, 0.5, nullptr, true}).text(), "[1, 0.5, null, true]");
  EXPECT_EQ(Value::of({{"a", {{"b", 1}}}}).text(), "{a: {b: 1}}");
}

TEST(Value, ReportsAWrongTypeAsProgramFault) { EXPECT_THROW(Value::string("x").as_int(), Error); }

TEST(Origin, SaysWhere) {
  EXPECT_EQ((Origin{"case", "cases/x/case.yaml", 12}.text()), "cases/x/case.yaml:12");
  EXPECT_EQ((Origin{"command line", "--set a=1", 0}.text()), "--set a=1");
  EXPECT_EQ((Origin{"default", "", 0}.text()), "default");
  EXPECT_EQ((Origin{"derived", "a * b", 0}.text()), "derived: a * b");
}
