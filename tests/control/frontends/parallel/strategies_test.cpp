#include "frontends/parallel/strategies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"

using namespace assay;
using ::testing::Contains;
using ::testing::HasSubstr;

namespace {

std::vector<std::string> texts(const std::string& strategy, int64_t batch) {
  std::vector<std::string> out;
  for (const Setting& setting : settings_of(strategy_named(strategy), batch)) out.push_back(setting.text);
  return out;
}

}  // namespace

TEST(Strategies, NamesAreDifferentAndPipelinesHaveEnoughToDo) {
  std::set<std::string> names;
  for (const ParallelStrategy& strategy : strategies()) {
    EXPECT_TRUE(names.insert(strategy.name).second) << strategy.name;
    EXPECT_GE(strategy.micro_batches, strategy.pp) << strategy.name;
    if (strategy.virtual_pp > 1) {
      EXPECT_EQ(strategy.micro_batches % strategy.pp, 0) << strategy.name;
    }
    EXPECT_LE(strategy.num_processes(), 4) << strategy.name;
  }
  EXPECT_EQ(names.size(), 17u);
}

TEST(Strategies, KeepTheGlobalBatch) {
  EXPECT_THAT(texts("dp4", 8), Contains("Global.local_batch_size=2"));
  EXPECT_THAT(texts("dp4", 8), Contains("Global.global_batch_size=8"));
  EXPECT_THAT(texts("sharded3xtp2", 8), Contains("Global.local_batch_size=4"));
  EXPECT_THAT(texts("tp4", 8), Contains("Global.local_batch_size=8"));
  EXPECT_THAT(texts("pp4", 8), Contains("Global.micro_batch_size=2"));
  EXPECT_THAT(texts("dp2xpp2", 8), Contains("Engine.accumulate_steps=2"));
  EXPECT_THAT(texts("sharded3xtp2", 8), Contains("Distributed.sharding.sharding_stage=3"));
  EXPECT_THAT(texts("sp", 8), Contains("Distributed.sequence_parallel=true"));
  EXPECT_THAT(texts("interleaved", 8), Contains("Distributed.virtual_pp_degree=2"));
  EXPECT_THAT(texts("recompute", 8), Contains("Model.use_recompute=true"));
  EXPECT_THROW(texts("dp4", 6), UsageError);
}

TEST(Strategies, SuggestANameForATypo) {
  try {
    strategy_named("dp3");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'dp2'"));
  }
}

TEST(Strategies, LimitSequencesAndRecomputeToModelsThatHaveThem) {
  for (const char* name : {"gpt", "llama", "glm", "bert"}) {
    for (const ParallelStrategy& strategy : strategies()) {
      EXPECT_EQ(not_applicable(strategy, parallel_model(name)), "") << name << " " << strategy.name;
    }
  }
  EXPECT_EQ(not_applicable(strategy_named("sp"), parallel_model("resnet")), "resnet has no sequences");
  EXPECT_NE(not_applicable(strategy_named("recompute"), parallel_model("simplenet")), "");
  EXPECT_EQ(not_applicable(strategy_named("recompute"), parallel_model("resnet")), "");
  EXPECT_EQ(not_applicable(strategy_named("recompute"), parallel_model("deepfm")), "");
  EXPECT_EQ(not_applicable(strategy_named("pp4"), parallel_model("deepfm")), "");
  EXPECT_TRUE(parallel_model("other").tiny.empty());
}
