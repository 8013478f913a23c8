#include "doctor/machine.h"

#include <gtest/gtest.h>

using namespace assay;

namespace {

MachineFacts healthy() {
  return {
      .host = {{"assay", {{"version", "1"}, {"commit", "abc"}}},
               {"host", {{"system", "Debian"}, {"kernel", "6.1"}}},
               {"processor", {{"model", "a CPU"}, {"cores", 2}}},
               {"memory", {{"total_bytes", 8e9}}}},
      .worker = {{"compiler", {{"name", "g++"}, {"version", "12"}}},
                 {"libtorch", {{"version", "1.13.1"}}},
                 {"onednn", {{"version", "2.6"}}},
                 {"gloo", {{"present", true}, {"version", "0.5"}}},
                 {"blas",
                  {{"openblas", true}, {"config", "OpenBLAS 0.3"}, {"problem", nullptr}, {"sgemm_gflops", 180.0}}},
                 {"cpu", {{"simd", "AVX2"}, {"usable_cores", 2}, {"fma_gflops", 200.0}}},
                 {"threads", {{"compute", 2}}},
                 {"devices", {{"nvml", "library absent"}, {"detail", "no library"}, {"list", Json::array()}}}},
      .data = {{{"name", "fashion-mnist"}, {"path", "/data"}, {"found", true}, {"package", "dataset-fashion-mnist"}}},
      .disk_free_bytes = 50e9};
}

std::vector<Finding> problems(const MachineFacts& facts) {
  std::vector<Finding> out;
  for (const Finding& finding : examine_machine(facts)) {
    if (finding.state == Finding::State::Problem) out.push_back(finding);
  }
  return out;
}

void expect_one_problem(const MachineFacts& facts, const std::string& name, const std::string& fix) {
  const auto found = problems(facts);
  ASSERT_EQ(found.size(), 1u) << name;
  EXPECT_EQ(found[0].name, name);
  EXPECT_NE(found[0].fix.find(fix), std::string::npos) << found[0].fix;
}

}  // namespace

TEST(Machine, ReportsNoProblemWhenHealthy) {
  EXPECT_TRUE(problems(healthy()).empty());
  bool shows_share = false;
  for (const Finding& finding : examine_machine(healthy()))
    shows_share |= finding.value.find("90 %") != std::string::npos;
  EXPECT_TRUE(shows_share);
}

TEST(Machine, FindsEachProblemWithItsFix) {
  MachineFacts facts = healthy();
  facts.worker["blas"]["openblas"] = false;
  facts.worker["blas"]["library"] = "/usr/lib/libblas.so.3";
  expect_one_problem(facts, "BLAS", "script/bootstrap");

  facts = healthy();
  facts.worker["blas"]["problem"] = "OpenBLAS with pthreads";
  expect_one_problem(facts, "BLAS", "script/bootstrap");

  facts = healthy();
  facts.worker["blas"]["sgemm_gflops"] = 5.0;
  expect_one_problem(facts, "BLAS", "stop other programs");

  facts = healthy();
  facts.worker["gloo"]["present"] = false;
  expect_one_problem(facts, "gloo", "apt-get install libgloo-dev");

  facts = healthy();
  facts.worker["threads"]["compute"] = 1;
  expect_one_problem(facts, "threads", "unset");

  facts = healthy();
  facts.data[0]["found"] = false;
  expect_one_problem(facts, "data fashion-mnist", "apt-get install dataset-fashion-mnist");

  facts = healthy();
  facts.disk_free_bytes = 1e6;
  expect_one_problem(facts, "disk for runs", "ASSAY_RUNS");

  facts = healthy();
  facts.worker = nullptr;
  facts.worker_error = "cannot start";
  expect_one_problem(facts, "assay-worker", "--target assay-worker");
}

TEST(Machine, SurvivesNonsenseFromTheWorker) {
  for (const Json& nonsense : {Json::object(), Json{{"blas", 5}}, Json{{"devices", {{"list", {1, "x", nullptr}}}}},
                               Json{{"cpu", {{"fma_gflops", "fast"}}}}}) {
    MachineFacts facts = healthy();
    facts.worker = nonsense;
    EXPECT_FALSE(examine_machine(facts).empty());
  }
}
