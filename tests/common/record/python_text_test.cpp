#include "record/python_text.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/process.h"
#include "base/text.h"
#include "random_records.h"
#include "record/json_text.h"

using namespace assay;

namespace {

// One JSON value a line, from Python itself.
std::vector<Json> ask_python(std::vector<std::string> arguments, const Json& input) {
  TempFolder folder;
  std::vector<std::string> argv{"/usr/bin/python3", ASSAY_SOURCE_DIR "/tests/peers/python_text.py"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  if (!input.is_null()) {
    write_file_atomic(folder.path() / "input.json", to_line(input));
    argv.push_back((folder.path() / "input.json").string());
  }
  const CapturedOutput output = capture({.argv = argv, .env = {}, .cwd = {}, .output_file = {}, .tree_mark = {}}, 60);
  EXPECT_TRUE(output.status.ok()) << output.err;
  std::vector<Json> lines;
  for (const std::string& line : split(output.out, '\n')) {
    if (!line.empty()) lines.push_back(Json::parse(line));
  }
  return lines;
}

}  // namespace

TEST(PythonText, EscapesEveryCodePointAsPythonDoes) {
  const std::vector<Json> points = ask_python({"points"}, {});
  ASSERT_GT(points.size(), 200000u);
  for (const Json& line : points) {
    // The character itself, through JSON's escape, so that no encoder of ours is involved.
    const uint32_t point = line[0];
    const std::string escape = point < 0x10000
                                   ? fmt::format("\"\\u{:04x}\"", point)
                                   : fmt::format("\"\\u{:04x}\\u{:04x}\"", 0xD800 + ((point - 0x10000) >> 10),
                                                 0xDC00 + ((point - 0x10000) & 0x3FF));
    const std::string text = Json::parse(escape);
    const auto expected = line[1].get<std::string>();
    ASSERT_EQ(python_repr(text), expected) << fmt::format("U+{:04X}", point);
    ASSERT_EQ(parse_python_literal(expected), Json(text));
  }
}

TEST(PythonText, PrintsStrAndReprAsPythonDoes) {
  RandomRecords random(21);
  Json values = Json::array();
  while (values.size() < 3000) {
    Json value = random.value(0);
    // The three words stand for numbers in a record, and Python does not know that.
    if (to_line(value).find("NaN") == std::string::npos && to_line(value).find("Infinity") == std::string::npos) {
      values.push_back(std::move(value));
    }
  }
  const std::vector<Json> lines = ask_python({"values"}, values);
  ASSERT_EQ(lines.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(python_str(values[i]), lines[i][0].get<std::string>());
    ASSERT_EQ(python_repr(values[i]), lines[i][1].get<std::string>());
    const std::optional<Json> back = parse_python_literal(python_repr(values[i]));
    ASSERT_TRUE(back && same_json(*back, values[i])) << python_repr(values[i]);
  }
}

TEST(PythonText, PrintsNonFiniteNumbers) {
  EXPECT_EQ(python_repr(Json{{"a", "NaN"}, {"b", "Infinity"}, {"c", "-Infinity"}}), "{'a': nan, 'b': inf, 'c': -inf}");
  EXPECT_EQ(parse_python_literal("{'a': nan, 'b': inf, 'c': -inf}"),
            (Json{{"a", "NaN"}, {"b", "Infinity"}, {"c", "-Infinity"}}));
  EXPECT_EQ(python_str("NaN"), "nan");
  EXPECT_EQ(value_of_python_str("nan"), "NaN");
}

TEST(PythonText, FormatsAreThoseOfPython) {
  RandomRecords random(22);
  const std::vector<std::string> specs{".3f", ".0f",  ".10f", "f",   ".5e",  "e", ".4g",
                                       "g",   ",.2f", "8.3f", ".1%", "12,d", "d", "%"};
  Json items = Json::array();
  while (items.size() < 3000) {
    const std::string& spec = specs[random.pick(specs.size())];
    const bool whole = random.pick(3) == 0 || spec.ends_with('d');
    items.push_back({whole ? Json(static_cast<int64_t>(random.pick(2'000'000'000)) - 1'000'000'000)
                           : Json(random.pick(2) ? random.number() : static_cast<double>(random.pick(100000)) / 997),
                     spec});
  }
  const std::vector<Json> lines = ask_python({"formats"}, items);
  ASSERT_EQ(lines.size(), items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    ASSERT_EQ(python_format(items[i][0], items[i][1].get<std::string>()), lines[i].get<std::string>())
        << to_line(items[i]);
  }
  EXPECT_EQ(python_format("text", ".3f"), std::nullopt);
  EXPECT_EQ(python_format(1.5, "d"), std::nullopt);
  EXPECT_EQ(python_format(1.5, ".5f+00:00"), std::nullopt);
  EXPECT_EQ(python_format("NaN", ".3f"), "nan");
}

TEST(PythonText, ReadsLiteralsOfOthers) {
  EXPECT_EQ(parse_python_literal("(1, 2,)"), Json({1, 2}));
  EXPECT_EQ(parse_python_literal(" { 1 : 'a' , None:2 } "), (Json{{"1", "a"}, {"None", 2}}));
  EXPECT_EQ(parse_python_literal(R"('\x41\u00e9\U0001f600\n\0')"), Json(std::string("Aé\xF0\x9F\x98\x80\n\0", 9)));
  for (const char* bad : {"", "{", "{'a'}", "{'a': }", "[1 2]", "'abc", "'\\x4'", "abc", "1 2", "[1]]", "{'a': 1",
                          "0x10", "__import__('os')", "'\\U11111111'", "1e", "--1", "{]"}) {
    EXPECT_EQ(parse_python_literal(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(parse_python_literal(std::string(100000, '[')), std::nullopt);
}

TEST(PythonText, SurvivesGarbage) {
  RandomRecords random(23);
  for (int i = 0; i < 20000; ++i) {
    const std::string text = mutate(python_repr(random.value(0)), random);
    if (const std::optional<Json> value = parse_python_literal(text)) python_repr(*value);
    value_of_python_str(text);
  }
}
