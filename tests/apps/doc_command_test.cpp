// The command of docs/extend/add-a-command.md, built as the page says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "command_line.h"

using testing::HasSubstr;

namespace assay {
Command doc_disk_command();
}

using namespace assay;

namespace {

struct Ran {
  int exit_code = 0;
  std::string out, err;
};

Ran run_disk(std::vector<std::string> words) {
  words.insert(words.begin(), "assay");
  const std::vector<Command> commands = {doc_disk_command()};
  Context context;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Ran ran;
  ran.exit_code = run_command_line(commands, words, context);
  std::fflush(stdout);
  ran.out = testing::internal::GetCapturedStdout();
  ran.err = testing::internal::GetCapturedStderr();
  return ran;
}

}  // namespace

TEST(DocCommand, DoesWhatItsPageSays) {
  const TempFolder runs;
  make_folder(runs.path() / "20260101-one");
  write_file_atomic(runs.path() / "20260101-one/plan.json", "{}  ");
  const std::string folder = runs.path().string();
  EXPECT_EQ(run_disk({"doc_disk", "--runs", folder}).out, "           4  20260101-one\n");
  EXPECT_EQ(Json::parse(run_disk({"doc_disk", "last", "--json", "--runs", folder}).out), Json({{"20260101-one", 4}}));
  EXPECT_EQ(run_disk({"doc_disk", "--min", "5", "--runs", folder}).out, "");
  EXPECT_EQ(run_disk({"doc_disk", "nothing", "--runs", folder}).exit_code, kExitUsage);
}

TEST(DocCommand, HasHelpAndErrorsLikeEveryCommand) {
  const Ran help = run_disk({"doc_disk", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* part : {"Usage: assay doc_disk", "assay doc_disk last --json", "--runs", "--home", "-v,--verbose"}) {
    EXPECT_THAT(help.out, HasSubstr(part));
  }
  const Ran wrong = run_disk({"doc_disk", "--mim", "3"});
  EXPECT_EQ(wrong.exit_code, kExitUsage);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean '--min'?"));
  EXPECT_EQ(run_disk({"doc_disk", "--min", "-1"}).exit_code, kExitUsage);
}
