#include "report/write_reports.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "report/html.h"
#include "report/junit.h"
#include "report/markdown.h"
#include "sample_run.h"

using namespace assay;

TEST(WriteReports, WritesAllAndLeavesNothingElse) {
  const TempFolder folder;
  const RunView run = failing_run();
  write_reports(run, folder.path() / "run");
  write_reports(run, folder.path() / "run");  // again: replaced
  EXPECT_EQ(read_file(folder.path() / "run/report.html"), render_html(run));
  EXPECT_EQ(read_file(folder.path() / "run/report.md"), render_markdown(run));
  EXPECT_EQ(read_file(folder.path() / "run/junit.xml"), render_junit(run));
  EXPECT_EQ(read_json_file(folder.path() / "run/result.json")["outcome"], "Error");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path() / "run"), fs::directory_iterator()), 4);
}

TEST(WriteReports, SaysWhatIsInTheWay) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "file", "x");
  EXPECT_THROW(write_reports(sample_run(), folder.path() / "file"), InfrastructureError);
  // result.json comes last: while another report cannot be written, there is none.
  make_folder(folder.path() / "run/junit.xml/x");
  EXPECT_THROW(write_reports(sample_run(), folder.path() / "run"), InfrastructureError);
  EXPECT_FALSE(fs::exists(folder.path() / "run/result.json"));
}
