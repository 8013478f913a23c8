#include "config/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "base/time.h"
#include "temp_home.h"

using namespace assay;
using testing::AllOf;
using testing::HasSubstr;

namespace {

Value parse(std::string_view text) { return parse_yaml(text, "f.yaml", "case"); }
std::string failure(const std::string& text) {
  return error_of([&] { parse(text); });
}

}  // namespace

// Which text is what: the core schema of YAML 1.2 (section 10.3.2 of its specification).
TEST(Yaml, ReadsScalarsByTheCoreSchema) {
  const Value map = parse(R"(
t: [true, True, TRUE]
f: [false, False, FALSE]
n: [null, Null, NULL, ~, ]
i: [0, 12, -3, +7, 007]
d: [0.5, -1.25, 1e-4, 1E3, +.5, 12., 6.02e23, 123456789012345678901234567890]
inf: [.inf, -.INF, +.Inf]
nan: .NaN
s: [yes, no, on, off, inf, nan, infinity, 1_000, 12e, e5, 1.2.3, "1", '2', 0x, tRUE, -, 1 2]
)");
  for (const Value& item : map.child("t")->items()) EXPECT_TRUE(item.as_bool());
  for (const Value& item : map.child("f")->items()) EXPECT_FALSE(item.as_bool());
  EXPECT_EQ(map.child("n")->items().size(), 4u);
  for (const Value& item : map.child("n")->items()) EXPECT_TRUE(item.is_null());
  EXPECT_EQ(map.child("i")->to_json(), Json({0, 12, -3, 7, 7}));
  EXPECT_EQ(map.child("d")->to_json(),
            Json({0.5, -1.25, 1e-4, 1e3, 0.5, 12.0, 6.02e23, 123456789012345678901234567890.0}));
  for (const Value& item : map.child("d")->items()) EXPECT_TRUE(item.is_double());
  EXPECT_EQ(map.find("inf.1")->as_double(), -INFINITY);
  EXPECT_TRUE(std::isnan(map.child("nan")->as_double()));
  for (const Value& item : map.child("s")->items()) EXPECT_TRUE(item.is_string()) << item.text();
}

TEST(Yaml, RecordsTheLineOfEveryNode) {
  const Value map = parse("a: 1\nb:\n  c:\n    - x\n    - y\n\nd: {e: 2,\n    f: 3}\n");
  EXPECT_EQ(map.find("a")->origin(), (Origin{"case", "f.yaml", 1}));
  EXPECT_EQ(map.find("b")->origin().line, 2);
  EXPECT_EQ(map.find("b.c")->origin().line, 3);
  EXPECT_EQ(map.find("b.c.1")->origin().line, 5);
  EXPECT_EQ(map.find("d.e")->origin().line, 7);
  EXPECT_EQ(map.find("d.f")->origin().line, 8);
  EXPECT_EQ(map.find("b.c")->origin().column, 3) << "of the key";
  EXPECT_EQ(map.find("b.c.1")->origin().column, 7);
  EXPECT_EQ(map.find("d.e")->origin().exact_text(), "f.yaml:7:5");
}

TEST(Yaml, GivesCommandLineTextNoLine) {
  EXPECT_EQ(parse_yaml("{a: 1}", "--set x={a: 1}", "command line", 0).find("a")->origin().text(), "--set x={a: 1}");
}

TEST(Yaml, SupportsAliasesAndMergeKeys) {
  const Value map = parse("base: &b {x: 1, y: 2}\nown: {<<: *b, y: 3}\nsame: *b\nlist: {<<: [{z: 1}, *b]}\n");
  EXPECT_EQ(map.find("own.x")->as_int(), 1);
  EXPECT_EQ(map.find("own.y")->as_int(), 3);
  EXPECT_EQ(map.find("same.y")->as_int(), 2);
  EXPECT_EQ(map.find("list.z")->as_int(), 1);
  EXPECT_EQ(map.find("list.x")->as_int(), 1);
}

TEST(Yaml, ReadsEmptyTextAsNull) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n"}) EXPECT_TRUE(parse(text).is_null()) << text;
}

TEST(Yaml, NamesBothLinesOfDuplicateKeys) {
  EXPECT_THAT(failure("a: 1\nb: 2\na: 3\n"), AllOf(HasSubstr("f.yaml:3"), HasSubstr("'a'"), HasSubstr("line 1")));
  EXPECT_THAT(failure("x: {b: 2,\n  b: 3}\n"), AllOf(HasSubstr("f.yaml:2"), HasSubstr("line 1")));
}

TEST(Yaml, RefusesWhatAConfigurationCannotMean) {
  EXPECT_THAT(failure("a: !!python/object:os.system x\n"), HasSubstr("tag"));
  EXPECT_THAT(failure("a: !secret [1]\n"), HasSubstr("tag"));
  EXPECT_THAT(failure("a: 1\n---\nb: 2\n"), HasSubstr("more than one document"));
  EXPECT_THAT(failure("[a]: 1\n"), HasSubstr("key"));
  EXPECT_THAT(failure("{a: 1}: 1\n"), HasSubstr("key"));
  EXPECT_THAT(failure("~: 1\n"), HasSubstr("key"));
  EXPECT_THAT(failure("<<: 5\n"), HasSubstr("<<"));
  EXPECT_THAT(failure("a: &a [*a]\n"), HasSubstr("alias"));
  EXPECT_THAT(failure("a: *nowhere\n"), HasSubstr("f.yaml:1"));
}

TEST(Yaml, NamesTheLineOfBrokenText) {
  EXPECT_THAT(failure("a: 1\nb: [1, 2\nc: 3\n"), AllOf(HasSubstr("f.yaml:"), HasSubstr("not valid YAML")));
  EXPECT_THAT(failure("a: 1\n b: 2\n"), HasSubstr("f.yaml:2"));
  for (const char* cut :
       {"a: \"open\n", "a: 'open\n", "a: 'open", "a: [\"x\n", "a: {b: 1\n", "a: 1\nb: \"c\n\n\nd: 2\n"}) {
    EXPECT_THAT(failure(cut), HasSubstr("not valid YAML")) << cut;
  }
  EXPECT_EQ(parse("a: |\n  x\n  y\n").child("a")->as_string(), "x\ny\n");
  EXPECT_EQ(parse("a: |+\n  x\n\n").child("a")->as_string(), "x\n\n");
  EXPECT_THAT(failure("a:\n\tb: 1\n"), HasSubstr("tabs"));
}

TEST(Yaml, NamesTheLineOfBytesThatAreNotText) {
  EXPECT_THAT(failure("a: 1\nb: \xff\xfe\n"), AllOf(HasSubstr("f.yaml:2"), HasSubstr("UTF-8")));
  EXPECT_THAT(failure(std::string("a: 1\nb: 2\nc: \0", 14)), AllOf(HasSubstr("f.yaml:3"), HasSubstr("UTF-8")));
  EXPECT_THAT(failure("\xff\xfe"
                      "a\n"),
              HasSubstr("f.yaml:1"));
  EXPECT_THAT(failure("a: \xC3"), HasSubstr("f.yaml:1"));
  EXPECT_EQ(parse("a: 模型\n").child("a")->as_string(), "模型");
}

TEST(Yaml, RejectsDeepNesting) {
  for (const char open : {'[', '{'}) {
    for (const size_t depth : {size_t{65}, size_t{1000}, size_t{500000}}) {
      EXPECT_THROW(parse("a: " + std::string(depth, open)), ConfigError) << open << depth;
    }
  }
  std::string block;
  for (int i = 0; i < 200; ++i) block += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  EXPECT_THAT(failure(block), HasSubstr("nested deeper"));
  std::string dashes;
  for (int i = 0; i < 20000; ++i) dashes += "- ";
  EXPECT_THROW(parse(dashes), ConfigError);
  // Just inside the limit.
  EXPECT_NO_THROW(parse("a: " + std::string(60, '[') + std::string(60, ']')));
}

TEST(Yaml, RejectsAliasBombsQuickly) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 9; ++j) bomb += std::string(j ? ", " : "") + "*a" + std::to_string(i - 1);
    bomb += "]\n";
  }
  const Stopwatch watch;
  EXPECT_THAT(failure(bomb), HasSubstr("values, aliases expanded"));
  // The same by depth alone: each level wraps the one before.
  std::string deep = "a0: &a0 [x]\n";
  for (int i = 1; i < 500; ++i)
    deep += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
  EXPECT_THAT(failure(deep), HasSubstr("nested deeper"));
  // Merge keys copy too.
  std::string merge = "a0: &a0 {";
  for (int i = 0; i < 1000; ++i) merge += "k" + std::to_string(i) + ": 1, ";
  merge += "}\n";
  for (int i = 1; i < 1000; ++i) merge += "b" + std::to_string(i) + ": {<<: *a0}\n";
  EXPECT_THROW(parse(merge), ConfigError);
  EXPECT_LT(watch.seconds(), 30);  // expanded, they would take forever; sanitizers need some seconds
}

TEST(Yaml, RejectsHugeFiles) {
  EXPECT_THAT(failure(std::string(kMaxYamlBytes + 1, 'a')), HasSubstr("bytes"));
  std::string many;
  for (size_t i = 0; i <= kMaxYamlNodes; ++i) many += "- 1\n";
  EXPECT_THAT(failure(many), HasSubstr("values"));
}

// A case file with a few bytes changed, removed or doubled, a few thousand times: an error or a value, never a crash.
TEST(Yaml, SurvivesMutatedFiles) {
  const std::string seed = std::string(kTinyCase) + "x: &a {b: [1, *n, \"q\\n\"], <<: *m} # c\n? |\n  t\n: >-\n  u\n";
  std::mt19937 random(20261115);
  const std::string bytes = "{}[]:,-&*!|>'\"%@`#?~<\t\n\\ .0e\xff\xc3\x80";
  int parsed = 0;
  const Stopwatch watch;
  for (int round = 0; round < 4000; ++round) {
    std::string text = seed;
    for (int edit = 1 + static_cast<int>(random() % 6); edit > 0 && !text.empty(); --edit) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = bytes[random() % bytes.size()]; break;
        case 1: text.insert(at, 1, bytes[random() % bytes.size()]); break;
        case 2: text.erase(at, random() % 8); break;
        default: text.insert(at, text.substr(random() % text.size(), random() % 40)); break;
      }
    }
    if (random() % 5 == 0) text.resize(random() % (text.size() + 1));
    try {
      (void)parse(text).to_json().dump(-1, ' ', false, Json::error_handler_t::replace);
      ++parsed;
    } catch (const ConfigError&) {
    }
  }
  EXPECT_GT(parsed, 10);
  EXPECT_LT(watch.seconds(), 60);
}
