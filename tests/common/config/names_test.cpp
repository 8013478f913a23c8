#include "config/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/yaml.h"
#include "temp_home.h"

using namespace assay;
using testing::AllOf;
using testing::HasSubstr;

namespace {

std::string applied(const std::string& yaml) {
  Value layer = parse_yaml(yaml, "f.yaml", "vendor");
  lift_config(layer);
  apply_names(layer);
  return to_line(layer.to_json());
}

}  // namespace

TEST(Names, TranslatesFlagPerfNames) {
  EXPECT_EQ(
      applied("train_batch_size: 4\nlr: 0.1\ngradient_accumulation_steps: 2\n"),
      R"({"Global":{"local_batch_size":4},"Engine":{"accumulate_steps":2},"Optimizer":{"lr":{"learning_rate":0.1}}})");
  EXPECT_EQ(
      applied("data_dir: /d\ntrain_data: t\neval_data: e\ninit_checkpoint: c\ntarget: 0.7\n"),
      R"({"data":{"path":"/d"},"Data":{"Train":{"dataset":{"input_dir":"t"}},"Eval":{"dataset":{"input_dir":"e"}}},)"
      R"("Engine":{"save_load":{"pretrained":"c"}},"target":{"value":0.7}})");
  // A target that is a section is ours already.
  EXPECT_EQ(applied("target: {value: 1}\n"), R"({"target":{"value":1}})");
}

TEST(Names, KeepsThePlaceOfTheValue) {
  Value layer = parse_yaml("\n\nlr: 0.1\n", "f.yaml", "vendor");
  apply_names(layer);
  EXPECT_EQ(layer.find("Optimizer.lr.learning_rate")->origin().text(), "f.yaml:3");
}

TEST(Names, RejectsTwoNamesOfOneKey) {
  EXPECT_THAT(error_of([] { applied("lr: 1\nOptimizer:\n  lr: {learning_rate: 2}\n"); }),
              AllOf(HasSubstr("f.yaml:1"), HasSubstr("f.yaml:3")));
  EXPECT_THAT(error_of([] { applied("lr: 1\nlearning_rate: 2\n"); }), HasSubstr("another name"));
}

TEST(Names, AcceptsFleetXSpellings) {
  EXPECT_EQ(applied("Optimizer: {name: FusedAdamW, lr: {name: LinearDecayWithWarmup, max_lr: 1.0}}\n"),
            R"({"Optimizer":{"name":"AdamW","lr":{"name":"linear","learning_rate":1.0}}})");
  EXPECT_EQ(applied("Engine: {mix_precision: {use_pure_fp16: True}}\n"),
            R"({"Engine":{"mix_precision":{"level":"O2","dtype":"float16","enable":true}}})");
  EXPECT_EQ(applied("Engine: {mix_precision: {enable: False, use_pure_fp16: True, level: O1}}\n"),
            R"({"Engine":{"mix_precision":{"enable":false,"level":"O1","dtype":"float16"}}})");
  EXPECT_EQ(applied("Engine: {mix_precision: {use_pure_fp16: False}}\n"),
            R"({"Engine":{"mix_precision":{"enable":false}}})");
}

TEST(Names, LiftsTheConfigSection) {
  EXPECT_EQ(applied("model: m\nconfig: {Global: {seed: 1}}\n"), R"({"model":"m","Global":{"seed":1}})");
  EXPECT_EQ(applied("config:\n"), "{}");
  EXPECT_THAT(error_of([] { applied("config: 5\n"); }), HasSubstr("f.yaml:1"));
}
