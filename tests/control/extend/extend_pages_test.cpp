// The pages of docs/extend, followed: CMake writes the files that they show, under names that begin with doc_, and
// builds them into this program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../report/sample_run.h"
#include "base/error.h"
#include "base/files.h"
#include "record/dialects/all.h"
#include "record/keys.h"
#include "record/stream.h"
#include "report/formats/all.h"
#include "run/evidence.h"
#include "verify/checks/all.h"

// What the lines that the pages add to the registries declare.
namespace assay::checks {
std::unique_ptr<const CheckBody> parse_doc_steps_reached(JsonFields& options);
}
namespace assay::formats {
ReportFormat doc_csv_format();
}
namespace assay {
const Dialect& doc_arrow_dialect();
}

using namespace assay;
using testing::HasSubstr;

namespace {

std::string extend_page(const char* name) { return read_file(fs::path(ASSAY_SOURCE_DIR) / "docs/extend" / name); }

std::vector<CheckType> types_with_the_page() {
  std::vector<CheckType> types = check_registry();
  types.push_back({"doc_steps_reached", checks::parse_doc_steps_reached});
  return types;
}

}  // namespace

TEST(ExtendPages, AddACheck) {
  EXPECT_THAT(extend_page("add-a-check.md"), HasSubstr("\n    CHECK(steps_reached) \\\n"));
  TempFolder folder;
  const RunRecord run{.path = folder.path(), .plan = {}, .state = {}};
  const auto verdict = [&](int steps) {
    const Json json = {{"type", "doc_steps_reached"}, {"records", "r"}, {"steps", steps}};
    return Check::parse(json, types_with_the_page()).judge(RunEvidence(run));
  };
  EXPECT_EQ(verdict(3).outcome, Outcome::Invalid) << "nothing was measured";
  Record record;
  record.type = Record::Type::Metrics;
  record.data = {{keys::kTrainLoss, 0.5}, {keys::kGlobalStep, 3}};
  RecordWriter(folder.path() / "r").write(record);
  EXPECT_EQ(verdict(3).outcome, Outcome::Pass);
  EXPECT_EQ(verdict(4).reason, "3 of 4 steps");
  EXPECT_THROW(Check::parse({{"type", "doc_steps_reached"}, {"records", "r"}}, types_with_the_page()), DataError);
}

TEST(ExtendPages, AddAReportFormat) {
  EXPECT_THAT(extend_page("add-a-report-format.md"), HasSubstr("\n    FORMAT(csv) \\\n"));
  std::vector<ReportFormat> formats = report_formats();
  formats.push_back(formats::doc_csv_format());
  RunView run;
  run.steps.resize(2);
  run.steps[0].number = 1;
  run.steps[0].name = "train";
  run.steps[0].outcome = Outcome::Pass;
  run.steps[0].seconds = 1.5;
  run.steps[1].number = 2;
  run.steps[1].name = "a \"b\"";
  run.steps[1].outcome = Outcome::Skipped;
  run.steps[1].reason = "x, y";
  EXPECT_EQ(report_format("doc_csv", formats).render(run, {}),
            "number,step,outcome,seconds,reason\n1,\"train\",Pass,1.500,\"\"\n2,\"a \"\"b\"\"\",Skipped,,\"x, y\"\n");
}

TEST(ExtendPages, AddALogDialect) {
  EXPECT_THAT(extend_page("add-a-log-dialect.md"), HasSubstr("\n    DIALECT(arrow) \\\n"));
  const Dialect& dialect = doc_arrow_dialect();
  EXPECT_TRUE(dialect.recognises(">> it=20 loss=0.52 ips=101.5"));
  std::vector<Record> records;
  dialect.reader()->read(">> it=20 loss=0.52 ips=101.5", "log:1", records);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].step, (std::vector<int64_t>{20}));
  EXPECT_EQ(records[0].data[keys::kTrainIps], 101.5);
  EXPECT_THROW(dialect.reader()->read(">> it=x", "log:2", records), DataError);
}

TEST(ReportFormats, AreFoundByName) {
  EXPECT_EQ(report_format_names(), (std::vector<std::string>{"terminal", "html", "markdown", "junit", "json"}));
  const RunView run = sample_run();
  for (const ReportFormat& format : report_formats()) {
    EXPECT_FALSE(format.render(run, {}).empty()) << format.name;
    EXPECT_TRUE(
        fs::exists(fs::path(ASSAY_SOURCE_DIR) / "src/control/report/formats" / (format.name + std::string(".cpp"))));
  }
  try {
    report_format("markdwon");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no format 'markdwon' (did you mean 'markdown'?)"));
  }
}
