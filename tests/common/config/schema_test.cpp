#include "config/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/files.h"
#include "config/listing.h"
#include "config/names.h"
#include "config/validate.h"

using namespace assay;
using testing::HasSubstr;

TEST(Schema, HasUniquePathsAndExistingSections) {
  for (const Schema* schema : {&Schema::native(), &Schema::foreign()}) {
    std::set<std::string> paths;
    for (const SectionSpec& section : schema->sections()) {
      EXPECT_TRUE(paths.insert(section.path).second) << section.path;
      EXPECT_FALSE(section.doc.empty()) << section.path;
    }
    for (const KeySpec& key : schema->keys()) {
      EXPECT_TRUE(paths.insert(key.path).second) << key.path;
      EXPECT_FALSE(key.doc.empty()) << key.path;
      const size_t dot = key.path.rfind('.');
      EXPECT_NE(schema->section(dot == std::string::npos ? "" : key.path.substr(0, dot)), nullptr) << key.path;
    }
  }
}

TEST(Schema, AcceptsItsOwnDefaults) {
  for (const KeySpec& key : Schema::native().keys()) {
    EXPECT_NE(key.required, key.fallback.has_value()) << key.path;
    if (!key.fallback) continue;
    Value layer = Value::map();
    layer.set_path(key.path, Value::of(*key.fallback));
    EXPECT_NO_THROW(check_layer(layer, Schema::native(), nullptr)) << key.path;
    EXPECT_EQ(layer.find(key.path)->to_json(), *key.fallback) << key.path;
    EXPECT_EQ(layer.find(key.path)->to_json().type(), key.fallback->type()) << key.path;
  }
}

TEST(Schema, HasAKeyForEveryScheduleParameter) {
  for (const ScheduleSpec& schedule : schedules()) {
    for (const std::string& name : schedule.parameters) {
      EXPECT_NE(Schema::native().key("Optimizer.lr." + name), nullptr) << name;
    }
  }
}

TEST(Schema, NamesOfOtherSystemsLeadToKnownKeysAndAreNoKeysThemselves) {
  for (const KeyName& name : key_names()) {
    for (const std::string& path : name.paths) EXPECT_NE(Schema::native().key(path), nullptr) << path;
    EXPECT_EQ(Schema::native().key(name.name), nullptr) << name.name;
  }
  for (const ValueName& name : value_names()) {
    const KeySpec* key = Schema::native().key(name.path);
    ASSERT_NE(key, nullptr) << name.path;
    EXPECT_THAT(key->choices, testing::Contains(name.ours));
    EXPECT_THAT(key->choices, testing::Not(testing::Contains(name.name)));
  }
}

// The sections and keys that FleetX's users know (reference: its engine YAML).
TEST(Schema, KnowsFleetXsKeys) {
  for (const char* path : {"Global.device",
                           "Global.seed",
                           "Global.global_batch_size",
                           "Global.local_batch_size",
                           "Global.micro_batch_size",
                           "Engine.max_steps",
                           "Engine.num_train_epochs",
                           "Engine.accumulate_steps",
                           "Engine.logging_freq",
                           "Engine.eval_freq",
                           "Engine.eval_iters",
                           "Engine.test_iters",
                           "Engine.run_mode",
                           "Engine.mix_precision.enable",
                           "Engine.mix_precision.dtype",
                           "Engine.mix_precision.level",
                           "Engine.mix_precision.scale_loss",
                           "Engine.mix_precision.custom_black_list",
                           "Engine.mix_precision.custom_white_list",
                           "Engine.save_load.save_steps",
                           "Engine.save_load.save_epoch",
                           "Engine.save_load.output_dir",
                           "Engine.save_load.ckpt_dir",
                           "Optimizer.name",
                           "Optimizer.weight_decay",
                           "Optimizer.beta1",
                           "Optimizer.beta2",
                           "Optimizer.epsilon",
                           "Optimizer.lr.name",
                           "Optimizer.grad_clip.name",
                           "Optimizer.grad_clip.clip_norm",
                           "Distributed.dp_degree",
                           "Distributed.mp_degree",
                           "Distributed.pp_degree",
                           "Distributed.sharding.sharding_degree",
                           "Distributed.sharding.sharding_stage",
                           "Distributed.sharding.sharding_offload",
                           "Distributed.sharding.reduce_overlap",
                           "Distributed.sharding.broadcast_overlap",
                           "Profiler.enable",
                           "Profiler.scheduler",
                           "Inference.model_dir",
                           "Inference.mp_degree"}) {
    EXPECT_NE(Schema::native().key(path), nullptr) << path;
  }
}

// docs/reference/configuration.md holds both tables; `assay config --schema --markdown` prints them.
TEST(Schema, MatchesItsDocument) {
  const std::string document = read_file(fs::path(ASSAY_SOURCE_DIR) / "docs/reference/configuration.md");
  EXPECT_THAT(document, HasSubstr(schema_markdown()));
  EXPECT_THAT(document, HasSubstr(names_markdown()));
}
