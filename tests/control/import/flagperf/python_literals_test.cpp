#include "import/flagperf/python_literals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "../../../common/config/temp_home.h"
#include "base/process.h"
#include "base/text.h"
#include "base/time.h"

using namespace assay;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

struct PythonRead {
  PythonFile file;
  std::vector<PythonIssue> issues;

  std::string text(std::string_view name) const {
    const PythonName* found = file.find(name);
    if (!found) return "absent";
    return found->known ? found->value.text() : "not read: " + found->why;
  }
  std::string lost() const {
    std::string out;
    for (const PythonIssue& issue : issues) {
      if (issue.lost) out += std::to_string(issue.line) + " " + join(issue.sets, ",") + ": " + issue.what + "\n";
    }
    return out;
  }
};

PythonRead read_python(std::string_view text, const fs::path& folder = "/nowhere") {
  PythonReader reader("/");
  PythonRead out;
  out.file = reader.read_text(text, "f.py", folder);
  out.issues = reader.issues();
  return out;
}

std::string value_of(const std::string& expression) { return read_python("x = " + expression + "\n").text("x"); }

}  // namespace

TEST(PythonLiterals, ReadsNumbers) {
  EXPECT_EQ(value_of("1_000"), "1000");
  EXPECT_EQ(value_of("0xFF"), "255");
  EXPECT_EQ(value_of("0o17"), "15");
  EXPECT_EQ(value_of("0b101"), "5");
  EXPECT_EQ(value_of("1e-3"), "0.001");
  EXPECT_EQ(value_of("1E+3"), "1000.0");
  EXPECT_EQ(value_of(".5"), "0.5");
  EXPECT_EQ(value_of("5."), "5.0");
  EXPECT_EQ(value_of("5.e2"), "500.0");
  EXPECT_EQ(value_of("-3"), "-3");
  EXPECT_EQ(value_of("--3"), "3");
  EXPECT_EQ(value_of("~5"), "-6");
  EXPECT_EQ(value_of("9223372036854775807"), "9223372036854775807");
  for (const char* bad : {"9223372036854775808", "007", "1__0", "1_", "0x", "1e999", "3j", "1.2.3", "0b2", "1e"}) {
    EXPECT_THAT(value_of(bad), HasSubstr("not read")) << bad;
  }
}

TEST(PythonLiterals, ReadsStrings) {
  EXPECT_EQ(value_of(R"("a" 'b' """c""" '''d''')"), "'abcd'");
  EXPECT_EQ(value_of(R"(r"\n" u"\t" "\x41\u00e4\U0001F600\101\q")"), "'\\n\tA\u00e4\U0001F600A\\q'");
  EXPECT_EQ(value_of("\"it's\""), "'it's'");
  EXPECT_EQ(value_of("'''two\r\nlines'''"), "'two\nlines'");
  EXPECT_EQ(value_of("'one \\\nline'"), "'one line'");
  EXPECT_EQ(value_of("('a'\n  # between\n  'b')"), "'ab'");
  EXPECT_EQ(value_of("'# no comment'  # a comment"), "'# no comment'");
  EXPECT_THAT(value_of("b'bytes'"), HasSubstr("bytes"));
  EXPECT_THAT(value_of(R"("\N{DASH}")"), HasSubstr("not read"));
  EXPECT_THAT(value_of(R"("\0")"), HasSubstr("not read"));
}

TEST(PythonLiterals, ReadsContainers) {
  EXPECT_EQ(value_of("[1, 'a', None, True, (2, 3), [],]"), "[1, 'a', null, true, [2, 3], []]");
  EXPECT_EQ(value_of("{'a': 1, \"b\": {'c': [2]},}"), "{a: 1, b: {c: [2]}}");
  EXPECT_EQ(value_of("dict(a=1, b='x')"), "{a: 1, b: 'x'}");
  EXPECT_EQ(value_of("{1, 2}"), "[1, 2]");
  EXPECT_EQ(value_of("()"), "[]");
  EXPECT_EQ(value_of("(1)"), "1");
  EXPECT_EQ(value_of("(1,)"), "[1]");
  EXPECT_EQ(value_of("1, 2"), "[1, 2]");
  EXPECT_EQ(value_of("[1, 2][-1]"), "2");
  EXPECT_EQ(value_of("{'a': 7}['a']"), "7");
  for (const char* bad :
       {"{1: 2}", "{'<<': 2}", "[*a]", "{**a}", "[i for i in x]", "[1, 2][2]", "[1, 2][0:1]", "{i: i for i in x}"}) {
    EXPECT_THAT(value_of(bad), HasSubstr("not read")) << bad;
  }
}

// Expected values are what CPython 3.11 prints.
TEST(PythonLiterals, ComputesArithmetic) {
  EXPECT_EQ(value_of("2 + 3 * 4 - 1"), "13");
  EXPECT_EQ(value_of("(2 + 3) * 4"), "20");
  EXPECT_EQ(value_of("2**15 * 1024"), "33554432");
  EXPECT_EQ(value_of("-2 ** 2"), "-4");
  EXPECT_EQ(value_of("2 ** -1"), "0.5");
  EXPECT_EQ(value_of("2 ** 3 ** 2"), "512");
  EXPECT_EQ(value_of("7 // 2"), "3");
  EXPECT_EQ(value_of("-7 // 2"), "-4");
  EXPECT_EQ(value_of("-7 % 3"), "2");
  EXPECT_EQ(value_of("7 % -3"), "-2");
  EXPECT_EQ(value_of("-7.5 % 2"), "0.5");
  EXPECT_EQ(value_of("7 / 2"), "3.5");
  EXPECT_EQ(value_of("8 / 2"), "4.0");
  EXPECT_EQ(value_of("-7.0 // 2"), "-4.0");
  EXPECT_EQ(value_of("1 << 20 | 1"), "1048577");
  EXPECT_EQ(value_of("True + 1"), "2");
  EXPECT_EQ(value_of("'a' + 'b' * 2"), "'abb'");
  EXPECT_EQ(value_of("[1] + [2] * 2"), "[1, 2, 2]");
  EXPECT_EQ(value_of("'%s-%d %.2f %%' % ('a', 3, 1)"), "'a-3 1.00 %'");
  EXPECT_EQ(value_of("'%05d' % 42"), "'00042'");
  EXPECT_EQ(value_of("os.path.join('a', 'b/', 'c')"), "'a/b/c'");
  EXPECT_EQ(value_of("os.path.join('a', '/b', '')"), "'/b/'");
  for (const char* bad : {"1 / 0", "1 // 0", "1.0 % 0", "1 + 'a'", "[1] + (2,)", "'%d' % 'a'", "'%s %s' % 'a'", "-'a'",
                          "9223372036854775807 + 1", "1 << 63", "1 << -1", "0.5 << 1", "'%*d' % (1, 2)"}) {
    EXPECT_THAT(value_of(bad), HasSubstr("not read")) << bad;
  }
}

TEST(PythonLiterals, NamesOfTheSameFile) {
  const PythonRead read = read_python(R"(
HOME = "/data"
N: int = 4
path = HOME + "/x"
text = f"{HOME}/{N}/{N:03d}/{{}}/{N * 2}"
a = b = N
c, d = 1, "two"
(e, f) = [3, 4]
N += 1
after: "float" = N
declared: int
)");
  EXPECT_EQ(read.text("path"), "'/data/x'");
  EXPECT_EQ(read.text("text"), "'/data/4/004/{}/8'");
  EXPECT_EQ(read.text("a") + read.text("b") + read.text("c") + read.text("d") + read.text("e") + read.text("f"),
            "441'two'34");
  EXPECT_EQ(read.text("after"), "5");
  EXPECT_EQ(read.file.find("N")->annotation, "int");
  EXPECT_EQ(read.file.find("N")->origin.line, 9);
  EXPECT_EQ(read.text("declared"), "absent");
  EXPECT_EQ(read.lost(), "");
}

TEST(PythonLiterals, NamesWhatIsNotExecuted) {
  const PythonRead read = read_python(R"(import torch
lr = 0.1
seed = 1
if torch.cuda.is_available():
    lr = 0.5; momentum: float = 1
else:
    lr = 0.6
for i in range(3): seed += i
size = 56 if big() else 27
scaler = GradScaler(2)
keep = 3
keep2 = keep + missing
names = [1]
names.append(2)
options = {}
options["a"] = 1
print("hello")
)");
  EXPECT_EQ(read.text("lr"), "not read: 'if' is not executed");
  EXPECT_EQ(read.text("momentum"), "not read: 'if' is not executed");
  EXPECT_EQ(read.text("seed"), "not read: 'for' is not executed");
  EXPECT_EQ(read.text("keep"), "3");
  EXPECT_THAT(read.text("names"), HasSubstr("not read"));
  EXPECT_THAT(read.text("options"), HasSubstr("not read"));
  EXPECT_EQ(read.lost(),
            "4 lr,momentum: 'if' is not executed\n"
            "8 i,seed: 'for' is not executed\n"
            "9 size: a condition ('... if ... else ...') is not evaluated\n"
            "10 scaler: GradScaler(...) is not called\n"
            "12 keep2: the name 'missing' is not defined in this file\n"
            "14 names: 'names.append(2)' is not executed\n"
            "16 options: an assignment to a part of something is not executed\n");
}

TEST(PythonLiterals, DoesNotGuessDependentValues) {
  const PythonRead read = read_python("a = 1\nif x:\n    a = 2\nb = a * 2\n");
  EXPECT_EQ(read.text("b"), "not read: 'a' is not known, see f.py:2");
}

TEST(PythonLiterals, IgnoresFunctionsAndModules) {
  const PythonRead read = read_python(R"(import os, torch.nn as nn
from typing import ClassVar
@decorated
def f(x):
    y = 1
    global lr
    return y
class C:
    z = 2
lr = 3
if __name__ == "__main__":
    lr = 4
"""a text"""
)");
  EXPECT_EQ(read.text("lr"), "3");
  EXPECT_EQ(read.text("y"), "absent");
  EXPECT_EQ(read.text("z"), "absent");
  for (const char* name : {"os", "nn", "ClassVar", "f", "C"}) {
    ASSERT_TRUE(read.file.find(name)) << name;
    EXPECT_FALSE(read.file.find(name)->may_be_value) << name;
  }
  EXPECT_EQ(read.lost(), "4 lr: a function may change these\n");  // and line 10 says what it is
}

TEST(PythonLiterals, ImportsOfFilesInTheSameFolder) {
  const TempHome home;
  home.write("config_common.py", "batch = 8\n_hidden = 1\nfrom deeper import *\nif x:\n    odd = 1\n");
  home.write("deeper.py", "level: str = 'O2'\nimport torch\n");
  home.write("listed.py", "__all__ = ['one']\none = 1\ntwo = 2\n");
  home.write("main.py",
             "from config_common import *\nfrom .listed import *\nfrom deeper import level as deep, gone\n"
             "from elsewhere import *\ntwice = batch * 2\n");
  PythonReader reader(home.path());
  const PythonFile& file = reader.read(home.path() / "main.py");
  EXPECT_EQ(file.value("twice")->as_int(), 16);
  EXPECT_EQ(file.value("level")->as_string(), "O2");
  EXPECT_EQ(file.value("deep")->as_string(), "O2");
  EXPECT_EQ(file.find("batch")->origin.text(), "config_common.py:1");
  EXPECT_EQ(file.find("_hidden"), nullptr);
  EXPECT_EQ(file.value("one")->as_int(), 1);
  EXPECT_EQ(file.find("two"), nullptr);
  EXPECT_FALSE(file.find("odd")->known);
  EXPECT_EQ(file.open_imports.size(), 1u);
  EXPECT_EQ(file.open_imports[0].line, 4);
  std::vector<std::string> lost;
  for (const PythonIssue& issue : reader.issues()) {
    if (issue.lost) lost.push_back(issue.file + ":" + std::to_string(issue.line));
  }
  EXPECT_THAT(lost, ElementsAre("config_common.py:4", "main.py:3", "main.py:4"));
}

TEST(PythonLiterals, EndsAtCirclesOfImports) {
  const TempHome home;
  home.write("a.py", "from b import *\nx = 1\n");
  home.write("b.py", "from a import *\ny = 2\n");
  PythonReader reader(home.path());
  const PythonFile& file = reader.read(home.path() / "a.py");
  EXPECT_EQ(file.value("y")->as_int(), 2);
  EXPECT_EQ(file.value("x")->as_int(), 1);
  EXPECT_FALSE(reader.issues().empty());
}

TEST(PythonLiterals, IgnoresWhatPythonRejects) {
  for (const char* text : {"a = 1\nb = (2\n", "a = 1\nb = 'x\n", "a = 1\n  b = 2\n", "a = 1\nb = 2 ?\n",
                           "a = 1\nb = )\n", "a = 1\nb = '''x\n", "a = 1 \\ \n", "a = 1\nb\xff = 2\n"}) {
    const PythonRead read = read_python(text);
    EXPECT_TRUE(read.file.failed) << text;
    EXPECT_TRUE(read.file.names.empty()) << text;
    EXPECT_THAT(read.lost(), HasSubstr("not Python")) << text;
  }
}

TEST(PythonLiterals, ReportsDuplicateKeys) {
  const PythonRead read = read_python("C = {\n 'a': 1,\n 'a': 2,\n}\n");
  EXPECT_EQ(read.text("C"), "{a: 2}");
  ASSERT_EQ(read.issues.size(), 1u);
  EXPECT_EQ(read.issues[0].line, 3);
  EXPECT_THAT(read.issues[0].what, HasSubstr("line 2"));
}

// Each of these would take Python, or a careless reader, minutes, gigabytes or the whole stack.
TEST(PythonLiterals, HandlesHostileInputQuickly) {
  const Stopwatch watch;
  std::string deep = "x = " + std::string(50000, '(') + "1" + std::string(50000, ')') + "\n";
  std::string wide = "x = [0] * 10000\n", chain = "x = [0]\n", text = "s = 'a' * 60000\n", many = "if x:\n";
  for (int i = 0; i < 30; ++i) wide += "x = x + x\n";
  for (int i = 0; i < 5000; ++i) chain += "x = [x]\n";
  for (int i = 0; i < 20; ++i) text += "s = [s] * 10000\n";
  for (int i = 0; i < 40000; ++i) many += " a" + std::to_string(i) + " = 1\n";
  std::string dict = "d = {";
  for (int i = 0; i < 40000; ++i) dict += "'" + std::to_string(i) + "': 1,";
  for (const std::string& hostile :
       {deep, wide, chain, text, many, dict + "}\n", "x = " + std::string(50000, '-') + "1\n",
        std::string("x = 9**9**9**9\n"), std::string("x = 'a' * 10**18\n"), std::string("x = '%99999999d' % 1\n"),
        std::string("x = [[[0] * 1000] * 1000] * 1000\n"), std::string("x = f'{1:99999999}'\n")}) {
    const PythonRead read = read_python(hostile);
    EXPECT_FALSE(read.lost().empty()) << hostile.substr(0, 40);
  }
  EXPECT_LT(watch.seconds(), 20);
}

TEST(PythonLiterals, SurvivesGarbage) {
  const std::string seed_text =
      "from x import *\nimport os\nlr: float = 1e-3 * 2**4 % 3\nx = {'a': [1, (2,)], 'b': f'{lr}'}\nif a:\n    b = 1\n"
      "def f():\n    pass\ns = 'a' \"b\" r'''c'''\nC = os.path.join('a', s)\ny = dict(a=1)[\"a\"]\nz, w = 1, 2; v += "
      "3\n";
  const std::string alphabet = "()[]{}'\"\\\n\t #=+-*/%.,:;@ab01ef_\xff\x01\xc3";
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string text = round % 3 == 0 ? "" : seed_text;
    for (int i = 0; i < 1 + round % 40; ++i) {
      const size_t at = text.empty() ? 0 : random() % text.size();
      const char c = alphabet[random() % alphabet.size()];
      switch (random() % 3) {
        case 0: text.insert(at, 1, c); break;
        case 1:
          if (!text.empty()) text[at] = c;
          break;
        default:
          if (!text.empty()) text.erase(at, random() % 5);
          break;
      }
    }
    const PythonRead read = read_python(text);
    for (const PythonName& name : read.file.names) EXPECT_TRUE(name.known || !name.why.empty());
    for (const PythonIssue& issue : read.issues) EXPECT_EQ(valid_utf8(issue.what), issue.what);
  }
}

// What this reader takes from a file is what Python has after executing it.
TEST(PythonLiterals, AgreesWithPython) {
  const CapturedOutput version = capture({.argv = {"/usr/bin/python3", "--version"}});
  if (!version.status.ok()) GTEST_SKIP() << "no /usr/bin/python3";
  const TempHome home;
  const fs::path file = home.write("conf.py", R"(import os
A = 1388270 * 4 * 30
B = 2**15 * 1024 // 7 % 1000
C = -7 // 2, -7 % 3, 7 % -3, 7.5 // 2, -7.5 % 2, 2**-2, 1e-05, 1E5, .5, 5.
D = "%s/%05.1f|%-4s|%x" % ("x", 3.14159, "ab", 255)
E = f"{A}-{1.5}-{B:04d}-{C[3]:.3f}" 'tail' r"\d"
F = {'a': [1, 2.5, None, True], "b": {"c": ("x", "y")}}
G = os.path.join("/a", "b", "../c", "")
H = dict(x=F, y=[0] * 3 + [1])
I = '''line
two\tthree \x41 \u00e9 \
joined'''
J = 1 << 10 | 3 ^ 1 & 7
K = (1, 2) + (3,)
)");
  const CapturedOutput python = capture(
      {.argv = {"/usr/bin/python3", "-c",
                "import json,sys; sys.path.insert(0, sys.argv[1]); import conf; print(json.dumps({k: v for k, v in "
                "vars(conf).items() if len(k) == 1}))",
                home.path().string()}});
  ASSERT_TRUE(python.status.ok()) << python.err;
  PythonReader reader(home.path());
  const PythonFile& read = reader.read(file);
  Json ours = Json::object();
  for (const PythonName& name : read.names) {
    if (name.name.size() == 1) ours[name.name] = name.known ? name.value.to_json() : Json("not read: " + name.why);
  }
  EXPECT_EQ(ours, Json::parse(python.out));
}
