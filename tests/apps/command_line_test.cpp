// Command lines: how values are read, which mistakes are named, what completion offers.
#include "command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

using namespace assay;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

struct Given {
  bool flag = false;
  std::string text = "usual";
  std::optional<int> number;
  double ratio = 0.5;
  std::vector<std::string> sets, words, only;
};

class CommandLineTest : public ::testing::Test {
 protected:
  CommandLineTest() {
    Command work{.name = "work",
                 .summary = "Works",
                 .examples = "  assay group work a",
                 .options = {{.names = "word", .value = &given_.words, .help = "Words", .required = true, .most = 2},
                             {.names = "-f,--flag", .value = &given_.flag, .help = "A flag"},
                             {.names = "--text",
                              .value = &given_.text,
                              .help = "A text",
                              .shows_default = true,
                              .choices = {"usual", "other"}},
                             {.names = "--number", .value = &given_.number, .help = "A number", .min = 1, .max = 9},
                             {.names = "--ratio", .value = &given_.ratio, .help = "A ratio", .excludes = "--number"},
                             {.names = "--set", .value = &given_.sets, .help = "Sets", .one_per_use = true},
                             {.names = "--only", .value = &given_.only, .help = "Some", .delimiter = ','}},
                 .run = [](Context& context) { context.exit_code = 7; },
                 .complete =
                     [](const Context&) {
                       return std::vector<std::string>{"alpha", "beta"};
                     }};
    commands_ = {{.name = "group", .summary = "Groups", .examples = "  assay group work a", .commands = {work}},
                 {.name = "secret", .summary = "", .examples = "", .run = [](Context&) {}, .hidden = true}};
  }
  int run(std::vector<std::string> words) {
    words.insert(words.begin(), "assay");
    context_ = Context();
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = run_command_line(commands_, words, context_);
    std::fflush(stdout);
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return code;
  }
  Given given_;
  std::vector<Command> commands_;
  Context context_;
  std::string out_, err_;
};

}  // namespace

TEST_F(CommandLineTest, ReadsEveryKindOfValue) {
  EXPECT_EQ(run({"group", "work", "a", "--set", "x=1", "--set", "y=2", "-f", "--text", "other", "--number", "3",
                 "--only", "p,q", "--json"}),
            7)
      << err_;
  EXPECT_TRUE(given_.flag);
  EXPECT_EQ(given_.text, "other");
  EXPECT_EQ(given_.number, 3);
  EXPECT_THAT(given_.sets, ElementsAre("x=1", "y=2"));
  EXPECT_THAT(given_.only, ElementsAre("p", "q"));
  EXPECT_THAT(given_.words, ElementsAre("a"));
  EXPECT_TRUE(context_.json);
}

TEST_F(CommandLineTest, TakesOptionsOfEveryCommandBeforeAndBehindIt) {
  EXPECT_EQ(run({"--runs", "here", "group", "work", "a"}), 7);
  EXPECT_EQ(context_.runs, "here");
  EXPECT_EQ(run({"group", "work", "a", "--runs", "there"}), 7);
  EXPECT_EQ(context_.runs, "there");
}

TEST_F(CommandLineTest, NamesWhatWasMeant) {
  const auto check = [&](const std::vector<std::string>& words, const char* says) {
    EXPECT_EQ(run(words), kExitUsage);
    EXPECT_THAT(err_, HasSubstr(says));
  };
  check({"gruop"}, "no command 'gruop' (did you mean 'group'?)\nSee assay --help");
  check({"group", "wrok"}, "no command 'group wrok' (did you mean 'work'?)\nSee assay group --help");
  check({"group", "work", "a", "--numbr", "3"}, "did you mean '--number'?");
  check({"group", "work", "a", "--jsn"}, "did you mean '--json'?");
  check({"group", "work"}, "word is required\nSee assay group work --help");
  check({"group", "work", "a", "--number", "10"}, "--number: Value 10 not in range 1 to 9");
  check({"group", "work", "a", "--number", "x"}, "--number");
  check({"group", "work", "a", "--text", "third"}, "third");
  check({"group", "work", "a", "--ratio", "1", "--number", "1"}, "excludes");
  check({"group", "work", "a", "b", "c"}, "c");
  check({}, "Usage: assay");
}

TEST_F(CommandLineTest, ShowsOwnExamplesAndOptionsOfEveryCommandInHelp) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"group", "--help"}, std::vector<std::string>{"group", "work", "--help"}}) {
    EXPECT_EQ(run(words), 0);
    for (const char* part : {"Examples:\n  assay group work a\n", "--json", "--runs", "--home", "-q,", "-v,"}) {
      EXPECT_THAT(out_, HasSubstr(part));
    }
    EXPECT_THAT(out_, testing::Not(HasSubstr("assay demo"))) << "examples of others";
  }
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_THAT(out_, testing::Not(HasSubstr("secret")));
}

TEST_F(CommandLineTest, CompletesCommandsOptionsAndValues) {
  const auto complete = [&](std::vector<std::string> words) { return completions(commands_, context_, words); };
  EXPECT_THAT(complete({""}), ElementsAre("group"));
  EXPECT_THAT(complete({"group", "w"}), ElementsAre("work"));
  EXPECT_THAT(complete({"group", "work", "a"}), ElementsAre("alpha"));
  EXPECT_THAT(complete({"group", "work", "--n"}), ElementsAre("--number"));
  EXPECT_THAT(complete({"group", "--j"}), ElementsAre("--json"));
}
