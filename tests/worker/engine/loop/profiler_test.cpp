#include "engine/loop/profiler.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "../toy.h"
#include "base/files.h"

namespace assay {
namespace {

TEST(Profiler, HoldsTheStepsOfTheWindowAndNoOthers) {
  const TempFolder folder("profile");
  Profiler profiler({.first_step = 2, .end_step = 4, .folder = folder.path() / "profile"});
  const auto module = toy_module();
  EngineOptions options = toy_options();
  options.max_steps = 7;
  Engine engine(*module, options, {.checkpoint_folder = {}, .label = {}, .target = {}, .observers = {&profiler}});
  const auto train = toy_loader(80);
  testing::internal::CaptureStdout();
  engine.fit(*train, nullptr);
  const std::string said = testing::internal::GetCapturedStdout();

  std::map<std::string, int> calls;
  std::set<std::string> steps;
  const Json trace = read_json_file(folder.path() / "profile/trace.json");
  for (const Json& event : trace.at("traceEvents")) {
    EXPECT_EQ(event.at("ph"), "X");
    EXPECT_GE(event.at("dur").get<double>(), 0);
    const auto name = event.at("name").get<std::string>();
    if (event.at("cat") == "step") steps.insert(name);
    ++calls[name];
  }
  EXPECT_EQ(steps, (std::set<std::string>{"step 2", "step 3"}));
  EXPECT_EQ(calls["aten::addmm"], 2);  // one per step: the toy has one layer
  EXPECT_EQ(calls["AddmmBackward0"], 2);
  const std::string table = read_file(folder.path() / "profile/operators.txt");
  EXPECT_NE(table.find("aten::addmm"), std::string::npos);
  EXPECT_NE(said.find("[profile] steps 2 to 3"), std::string::npos);
  EXPECT_NE(said.find("operator"), std::string::npos);
}

TEST(Profiler, WritesWhatItHasWhenTrainingEndsInTheWindow) {
  const TempFolder folder("profile");
  const auto run = [&](int64_t first, int64_t end, const std::string& name) {
    Profiler profiler({.first_step = first, .end_step = end, .folder = folder.path() / name});
    const auto module = toy_module();
    EngineOptions options = toy_options();
    options.max_steps = 3;
    Engine engine(*module, options, {.checkpoint_folder = {}, .label = {}, .target = {}, .observers = {&profiler}});
    testing::internal::CaptureStdout();
    engine.fit(*toy_loader(40), nullptr);
    testing::internal::GetCapturedStdout();
  };
  run(2, 100, "cut");
  run(10, 20, "never");
  EXPECT_TRUE(fs::exists(folder.path() / "cut/trace.json"));
  EXPECT_FALSE(fs::exists(folder.path() / "never"));
}

TEST(Profiler, AddsUpSelfTimeInTheTable) {
  const std::vector<ProfileSpan> spans = {
      {.name = "outer", .thread = 1, .start_ns = 0, .duration_ns = 5'000'000, .self_ns = 1'000'000},
      {.name = "inner", .thread = 1, .start_ns = 1, .duration_ns = 2'000'000, .self_ns = 2'000'000},
      {.name = "inner", .thread = 1, .start_ns = 2, .duration_ns = 1'000'000, .self_ns = 1'000'000},
      {.name = "step 1", .thread = 1, .start_ns = 0, .duration_ns = 9'000'000, .is_step = true}};
  EXPECT_EQ(operator_table(spans, 10),
            "operator     calls     self ms    share\n"
            "inner            2       3.000   75.0 %\n"
            "outer            1       1.000   25.0 %\n");
  EXPECT_EQ(operator_table(spans, 1).find("outer"), std::string::npos);
}

}  // namespace
}  // namespace assay
