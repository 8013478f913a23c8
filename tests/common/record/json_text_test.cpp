#include "record/json_text.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "random_records.h"

using namespace assay;

namespace {

std::string compact(const Json& value) {
  std::string out;
  append_json(out, value);
  return out;
}

std::string python(const Json& value) {
  std::string out;
  append_json(out, value, JsonStyle::Python);
  return out;
}

}  // namespace

TEST(JsonText, WritesTheDocumentedStyles) {
  const Json value{{"a", 1}, {"é", {1.0, nullptr, true, "\xF0\x9F\x98\x80"}}, {"e", Json::object()}};
  EXPECT_EQ(compact(value), "{\"a\":1,\"é\":[1.0,null,true,\"\xF0\x9F\x98\x80\"],\"e\":{}}");
  // json.dumps({"a": 1, "é": [1.0, None, True, "😀"], "e": {}})
  EXPECT_EQ(python(value), R"({"a": 1, "\u00e9": [1.0, null, true, "\ud83d\ude00"], "e": {}})");
  // json.dumps("\x00\x1f\x7f\"\\/\b\f\n\r\t")
  EXPECT_EQ(python(std::string("\0\x1f\x7f\"\\/\b\f\n\r\t", 11)), "\"\\u0000\\u001f\x7f\\\"\\\\/\\b\\f\\n\\r\\t\"");
  EXPECT_EQ(compact(1e-05), "1e-05");
  EXPECT_EQ(compact(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(compact(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
}

TEST(JsonText, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(compact("a\xFF\xC3"), "\"a\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(python("a\xFF"), R"("a\ufffd")");
}

TEST(JsonText, ReadsBackEveryValue) {
  RandomRecords random(41);
  for (int i = 0; i < 20000; ++i) {
    const Json value = random.value(0);
    ASSERT_TRUE(same_json(Json::parse(compact(value)), value)) << compact(value);
    ASSERT_TRUE(same_json(Json::parse(python(value)), value)) << python(value);
    ASSERT_TRUE(same_json(parse_python_json(python(value), "x"), value));
  }
}

TEST(JsonText, ReadsWhatPythonWritesBeyondJson) {
  // json.dumps([float("nan"), float("inf"), -float("inf"), "\udcff", "NaN"])
  EXPECT_EQ(parse_python_json(R"([NaN, Infinity, -Infinity, "\udcff", "NaN"])", "x").dump(),
            "[\"NaN\",\"Infinity\",\"-Infinity\",\"\xEF\xBF\xBD\",\"NaN\"]");
  EXPECT_EQ(parse_python_json(R"({"NaN": NaN, "a NaN \" b": [1, NaN]})", "x").dump(),
            R"({"NaN":"NaN","a NaN \" b":[1,"NaN"]})");
  EXPECT_EQ(parse_python_json(R"([1e999, -1e999, 1e-999, "\ud83d\ude00", NaN])", "x").dump(),
            "[\"Infinity\",\"-Infinity\",0.0,\"\xF0\x9F\x98\x80\",\"NaN\"]");
  EXPECT_EQ(parse_python_json("[\"\xFF\"]", "x").dump(), "[\"\xEF\xBF\xBD\"]");
  EXPECT_EQ(parse_python_json(R"(["\ud83d", "\ud83dx\ude00", "\ud83d\ud83d\ude00"])", "x").dump(),
            "[\"\xEF\xBF\xBD\",\"\xEF\xBF\xBDx\xEF\xBF\xBD\",\"\xEF\xBF\xBD\xF0\x9F\x98\x80\"]");
}

TEST(JsonText, RefusesWhatIsNoJsonAtAll) {
  for (const char* bad :
       {"", "{", "[1,]", "nan", "Nan", "[NaNx]", "{'a': 1}", "[\"\\u12\"]", "\"\\", "[1 2]", "\"\\x\""}) {
    EXPECT_THROW(parse_python_json(bad, "x"), DataError) << bad;
  }
  EXPECT_THROW(parse_python_json(std::string(100000, '['), "x"), DataError);
}

TEST(JsonText, SurvivesGarbage) {
  RandomRecords random(42);
  for (int i = 0; i < 20000; ++i) {
    const std::string text = mutate("[NaN, " + python(random.value(0)) + ", 1e999]", random);
    try {
      parse_python_json(text, "x");
    } catch (const DataError&) {
    }
  }
}
