#include "config/derive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/case.h"
#include "temp_home.h"

using namespace assay;
using testing::AllOf;
using testing::HasSubstr;

namespace {

class Derive : public testing::Test {
 protected:
  Derive() { home_.write("cases/tiny/case.yaml", kTinyCase); }
  ResolvedCase run(int nproc, std::vector<Setting> sets) const {
    ResolveRequest request = home_.request("tiny");
    request.key.nproc = nproc;
    request.sets = std::move(sets);
    return resolve_case(request);
  }
  std::string refused(int nproc, std::vector<Setting> sets) const {
    return error_of([&] { run(nproc, std::move(sets)); });
  }
  TempHome home_;
};

int64_t at(const ResolvedCase& found, const char* path) { return found.config.find(path)->as_int(); }

}  // namespace

// The formulas of FleetX: dp = world / (mp * pp * sharding); global = local * dp * sharding; accumulate = local /
// micro.
TEST_F(Derive, ComputesDegreesAndBatchSizes) {
  for (const int world : {1, 2, 8, 24}) {
    for (const int mp : {1, 2}) {
      for (const int sharding : {1, 4}) {
        if (world % (mp * sharding) != 0) continue;
        const ResolvedCase found = run(
            world, {"Distributed.mp_degree=" + std::to_string(mp),
                    "Distributed.sharding.sharding_degree=" + std::to_string(sharding), "Global.micro_batch_size=8"});
        const int dp = world / (mp * sharding);
        EXPECT_EQ(at(found, "Distributed.dp_degree"), dp);
        EXPECT_EQ(at(found, "Global.global_batch_size"), 32 * dp * sharding);
        EXPECT_EQ(at(found, "Engine.accumulate_steps"), 4);
      }
    }
  }
}

TEST_F(Derive, NamesTheRuleOfDerivedValues) {
  const ResolvedCase found = run(2, {});
  const Origin& origin = found.config.find("Global.global_batch_size")->origin();
  EXPECT_EQ(origin.layer, "derived");
  EXPECT_EQ(origin.text(), "derived: local_batch_size * dp * sharding");
  // What follows from others is not an override.
  EXPECT_TRUE(found.overrides.empty());
}

TEST_F(Derive, DerivesFromAnyOneBatchSize) {
  const ResolvedCase global = run(4, {"Global.local_batch_size=null", "Global.global_batch_size=64"});
  EXPECT_EQ(at(global, "Global.local_batch_size"), 16);
  EXPECT_EQ(at(global, "Global.micro_batch_size"), 16);
  const ResolvedCase micro =
      run(4, {"Global.local_batch_size=null", "Global.micro_batch_size=8", "Engine.accumulate_steps=3"});
  EXPECT_EQ(at(micro, "Global.local_batch_size"), 24);
  EXPECT_EQ(at(micro, "Global.global_batch_size"), 96);
  const ResolvedCase accumulate = run(1, {"Engine.accumulate_steps=4"});
  EXPECT_EQ(at(accumulate, "Global.micro_batch_size"), 8);
}

TEST_F(Derive, NamesBothPlacesOfAContradiction) {
  EXPECT_THAT(refused(2, {"Global.global_batch_size=32"}),
              AllOf(HasSubstr("Global.global_batch_size = 32 (--set Global.global_batch_size=32)"),
                    HasSubstr("Global.local_batch_size = 32"), HasSubstr("case.yaml:9"), HasSubstr("= 64")));
  EXPECT_THAT(refused(1, {"Global.micro_batch_size=5"}),
              AllOf(HasSubstr("micro_batch_size = 5"), HasSubstr("case.yaml:9")));
  EXPECT_THAT(refused(1, {"Global.micro_batch_size=8", "Engine.accumulate_steps=2"}),
              AllOf(HasSubstr("--set Engine.accumulate_steps=2"), HasSubstr("--set Global.micro_batch_size=8")));
  EXPECT_THAT(refused(8, {"Distributed.dp_degree=4"}),
              AllOf(HasSubstr("Distributed.dp_degree = 4"), HasSubstr("8 processes")));
  EXPECT_THAT(refused(8, {"Distributed.mp_degree=3"}), HasSubstr("Distributed.mp_degree = 3"));
  EXPECT_THAT(refused(1, {"Distributed.pp_degree=2"}), HasSubstr("Distributed.pp_degree = 2"));
  EXPECT_THAT(refused(2, {"Global.local_batch_size=null", "Global.global_batch_size=33"}), HasSubstr("must divide"));
  const std::vector<Setting> interleaved = {"Distributed.pp_degree=2", "Distributed.virtual_pp_degree=2"};
  const auto with = [&](const char* micro) {
    std::vector<Setting> all = interleaved;
    all.emplace_back(micro);
    return all;
  };
  EXPECT_THAT(refused(2, interleaved), HasSubstr("multiple of pp_degree"));
  EXPECT_THAT(refused(2, with("Engine.accumulate_steps=1")), HasSubstr("Engine.accumulate_steps = 1 (--set"));
  EXPECT_EQ(at(run(2, with("Engine.accumulate_steps=4")), "Global.micro_batch_size"), 8);
}

TEST_F(Derive, SurvivesHugeValues) {
  const std::string huge = "9223372036854775807";
  EXPECT_THAT(refused(2, {"Global.local_batch_size=" + huge}), HasSubstr("too large"));
  EXPECT_THAT(refused(1, {"Distributed.mp_degree=" + huge, "Distributed.pp_degree=2"}), HasSubstr("too large"));
  EXPECT_THAT(
      refused(1, {"Global.local_batch_size=null", "Global.micro_batch_size=" + huge, "Engine.accumulate_steps=2"}),
      HasSubstr("too large"));
  EXPECT_THAT(refused(1, {"Global.micro_batch_size=" + huge, "Engine.accumulate_steps=" + huge}),
              HasSubstr("contradictory"));
  EXPECT_THAT(refused(1, {"Optimizer.lr.warmup_rate=1", "Engine.max_steps=" + huge}), HasSubstr("too large"));
}

TEST_F(Derive, DerivesDataFoldersFromTheDataSet) {
  const auto folder = [&](std::vector<Setting> sets) {
    return run(1, std::move(sets)).config.find("Data.Train.dataset.input_dir")->to_json();
  };
  EXPECT_EQ(folder({}), Json());
  EXPECT_EQ(folder({"data.path=/data"}), "/data");
  EXPECT_EQ(folder({"data.path=/data", "Data.Train.dataset.input_dir=train"}), "/data/train");
  EXPECT_EQ(folder({"data.path=/data", "Data.Train.dataset.input_dir=/other"}), "/other");
  EXPECT_EQ(at(run(1, {"Data.Eval.dataset.name=idx_images"}), "Data.Eval.loader.batch_size"), 32);
}

TEST_F(Derive, DerivesWarmUpFromItsRate) {
  EXPECT_EQ(at(run(1, {"Optimizer.lr.warmup_rate=0.1", "Engine.max_steps=250"}), "Optimizer.lr.warmup_steps"), 25);
  const Setting cosine = "Optimizer.lr={name: cosine, warmup_rate: 0.5, decay_steps: 30}";
  EXPECT_EQ(at(run(1, {cosine, "Engine.max_steps=250"}), "Optimizer.lr.warmup_steps"), 15);
  // Samples follow from the batches: the engine's business, unless decay_steps says how many.
  EXPECT_EQ(at(run(1, {"Optimizer.lr.unit=samples", "Optimizer.lr.warmup_rate=0.1", "Engine.max_steps=250"}),
               "Optimizer.lr.warmup_steps"),
            0);
  const Setting samples = "Optimizer.lr={name: linear, unit: samples, warmup_rate: 0.5, decay_steps: 3000}";
  EXPECT_EQ(at(run(1, {samples, "Engine.max_steps=250"}), "Optimizer.lr.warmup_steps"), 1500);
  const ResolvedCase open_end = run(1, {"Optimizer.lr.warmup_rate=0.1"});
  EXPECT_EQ(at(open_end, "Optimizer.lr.warmup_steps"), 0);
  EXPECT_EQ(open_end.config.find("Optimizer.lr.warmup_rate")->as_double(), 0.1);
  EXPECT_THAT(refused(1, {"Optimizer.lr.warmup_rate=0.1", "Optimizer.lr.warmup_steps=3", "Engine.max_steps=250"}),
              HasSubstr("only one"));
}
