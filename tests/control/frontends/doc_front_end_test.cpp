// The front-end of docs/extend/add-a-front-end.md, built as the page says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "execute/run_services.h"
#include "frontends/doc_todo/doc_todo_front_end.h"

using namespace assay;
using testing::HasSubstr;

TEST(DocFrontEnd, RunsTheFileOfItsPage) {
  const fs::path path = fs::path(ASSAY_DOC_FRONT_END) / "hello.doc_todo";
  const FrontEnd front_end = doc_todo_front_end();
  ASSERT_TRUE(front_end.recognises(path));
  const PlannedRun planned = front_end.plan(path, {});
  ASSERT_EQ(planned.plan.steps.size(), 2u);
  const TempFolder runs;
  RunFolder folder = RunFolder::create(runs.path(), planned.plan, {"assay", "run", path.string()});
  const RunServices services = run_services(planned.plan);
  Console console(Console::Level::Quiet);
  EXPECT_EQ(execute(folder, *services.launcher, console, services.options), Outcome::Pass);
}

TEST(DocFrontEnd, NamesTheLineOfAMistake) {
  const TempFolder folder;
  const fs::path path = folder.path() / "x.doc_todo";
  write_file_atomic(path, "a: true\nno command here\n");
  try {
    doc_todo_front_end().plan(path, {});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("x.doc_todo:2: a line is name: command"));
  }
}
