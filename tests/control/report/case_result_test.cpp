#include "report/case_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/time.h"
#include "config/case.h"
#include "report/result_json.h"
#include "run/run_folder.h"
#include "sample_run.h"

namespace assay {
namespace {

using testing::HasSubstr;

CaseResult sample_result(const std::string& name = "resnet") { return case_result_of(name, sample_run()).value(); }

TEST(CaseResult, ReadsARun) {
  const CaseResult result = sample_result();
  EXPECT_EQ(result.case_name, "resnet");
  EXPECT_EQ(result.run, "20261115-194305-demo");
  EXPECT_EQ(result.outcome, Outcome::Pass);
  EXPECT_EQ(result.metric, "accuracy");
  EXPECT_EQ(result.value, 0.9132);
  EXPECT_EQ(result.reached, true);
  EXPECT_EQ(result.seconds, 98.25);
  EXPECT_EQ(result.speed, 2481.4);
  EXPECT_EQ(result.hash, "ab12");
  EXPECT_FALSE(case_result_of("", sample_run()).has_value());
  RunView empty;
  EXPECT_FALSE(case_result_of("resnet", empty)->value.has_value());
}

TEST(CaseResult, RoundTrips) {
  for (const CaseResult& result : {sample_result(), CaseResult{.case_name = "x"}}) {
    EXPECT_EQ(to_json(case_result_from(to_json(result), "here")), to_json(result));
  }
  const Json whole = to_json(sample_result());
  for (const char* key : {"case", "run", "started", "outcome", "value", "seconds", "unit", "machine", "hash"}) {
    Json broken = whole;
    broken[key] = Json::array();
    EXPECT_THROW(case_result_from(broken, "here"), DataError) << key;
  }
  EXPECT_THROW(case_result_from(Json(7), "here"), DataError);
}

TEST(CaseResult, IsStoredWithItsCaseAndShown) {
  const TempFolder folder("case");
  const fs::path readme = folder.path() / "README.md";
  write_file_atomic(readme, "# resnet\n");
  EXPECT_THROW(store_case_result(folder.path(), sample_result()), DataError);
  EXPECT_FALSE(fs::exists(folder.path() / "results.json"));
  write_file_atomic(readme, std::string("# resnet\n\n") + kResultsBegin + "old\n" + kResultsEnd + "\nend\n");
  store_case_result(folder.path(), sample_result("resnet-50"));
  store_case_result(folder.path(), sample_result());
  CaseResult better = sample_result();
  better.value = 0.95;
  store_case_result(folder.path(), better);
  const std::vector<CaseResult> stored = read_case_results(folder.path());
  ASSERT_EQ(stored.size(), 2u);
  EXPECT_EQ(stored[0].value, 0.95);
  EXPECT_EQ(stored[1].case_name, "resnet-50");
  EXPECT_EQ(read_file(readme),
            std::string("# resnet\n\n") + kResultsBegin + results_table(stored) + kResultsEnd + "\nend\n");
  EXPECT_THAT(results_table(stored), HasSubstr("| `resnet` | accuracy 0.9500 | >= 0.9000 | "));
  write_file_atomic(folder.path() / "results.json", "[]");
  EXPECT_THROW(read_case_results(folder.path()), DataError);
  write_file_atomic(folder.path() / "results.json", R"({"schema": "assay/case-results-v1", "results": [{}]})");
  EXPECT_THROW(read_case_results(folder.path()), DataError);
}

// The pages of the project's own cases show what is stored beside them.
TEST(CaseResult, MatchesTheReadmes) {
  const fs::path cases = fs::path(ASSAY_SOURCE_DIR) / "cases";
  for (const auto& entry : fs::directory_iterator(cases)) {
    const std::vector<CaseResult> results = read_case_results(entry.path());
    const fs::path path = entry.path() / "README.md";
    const std::string readme = read_file(path);
    const std::string table = results.empty() ? "" : results_table(results);
    EXPECT_EQ(with_results_table(readme, table, path.string()), readme) << path << ": assay report RUN --to-case";
    for (const CaseResult& result : results) {
      EXPECT_THAT(table, HasSubstr("`" + result.hash.substr(0, 8) + "` |"));
      EXPECT_TRUE(find_case(ASSAY_SOURCE_DIR, result.case_name)) << path << " shows " << result.case_name;
      EXPECT_TRUE(result.reached.value_or(false)) << result.case_name;
    }
  }
}

double stored_value(const std::string& model, const std::string& name) {
  for (const CaseResult& result : read_case_results(fs::path(ASSAY_SOURCE_DIR) / "cases" / model)) {
    if (result.case_name == name) return result.value.value();
  }
  throw DataError("no stored result of " + name);
}

double target_of_case(const std::string& name) {
  return resolve_case({.home = ASSAY_SOURCE_DIR, .key = CaseKey::parse(name)}).target.value;
}

// Two targets are what another case achieved: llama within 1 % of gpt, glm better than gpt on the same spans.
TEST(CaseResult, UsesResultsOfOtherCasesAsTargets) {
  EXPECT_LE(target_of_case("llama"), 1.01 * stored_value("gpt", "gpt"));
  EXPECT_NEAR(target_of_case("llama"), 1.01 * stored_value("gpt", "gpt"), 0.01) << "and asks for no more";
  EXPECT_LT(target_of_case("glm"), stored_value("gpt", "gpt-spans"));
  EXPECT_NEAR(target_of_case("glm"), stored_value("gpt", "gpt-spans"), 0.01);
}

Plan plan_for(const std::string& case_key) {
  Plan plan{.title = "train", .case_key = case_key, .steps = {}};
  Step step;
  step.name = "train";
  step.command.argv = {"true"};
  plan.steps.push_back(step);
  return plan;
}

TEST(LastResults, AreThoseOfTheNewestRunOfEachCase) {
  const TempFolder runs("runs");
  EXPECT_TRUE(last_results(runs.path() / "none").empty());
  const auto add = [&](const std::string& name, const std::string& key, std::optional<double> value) {
    RunFolder made = RunFolder::create(runs.path(), plan_for(key), {"assay"});
    if (value) {
      RunView view = sample_run();
      view.id = name;
      change_result(view, {{"final_accuracy", *value}});
      write_file_atomic(made.path() / "result.json", result_json_text(view));
      made.run_ended(Outcome::Pass);
    }
    fs::rename(made.path(), runs.path() / name);
  };
  add("20260101-a", "resnet", 0.5);
  add("20260102-b", "resnet:libtorch:cpu:1:1:1", 0.6);
  add("20260103-c", "gpt", 0.7);
  add("20260104-d", "gpt", std::nullopt);  // goes on, or was killed
  add("20260105-e", "", 0.9);              // of no case
  make_folder(runs.path() / "20260106-f");
  make_folder(runs.path() / "20260107-g");
  write_file_atomic(runs.path() / "20260107-g/plan.json", "{");
  const auto last = last_results(runs.path());
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(last.at("resnet").value, 0.6);
  EXPECT_EQ(last.at("resnet").run, "20260102-b");
  EXPECT_FALSE(last.at("gpt").value.has_value());
  EXPECT_EQ(last.at("gpt").outcome, std::nullopt);
}

}  // namespace
}  // namespace assay
