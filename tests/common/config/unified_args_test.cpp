#include "config/unified_args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/schema.h"
#include "temp_home.h"

using namespace assay;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

UnifiedArgs args(const std::vector<std::pair<std::string, std::string>>& given) {
  UnifiedArgs out;
  for (const auto& [name, text] : given) out.set(name, text);
  return out;
}

std::vector<std::string> sets(const std::vector<std::pair<std::string, std::string>>& given) {
  std::vector<std::string> out;
  for (const Setting& setting : args(given).to_sets()) out.push_back(setting.text + " from " + setting.source);
  return out;
}

}  // namespace

// The names and defaults of the original interface (reference/tecorigin: unified run interface).
TEST(UnifiedArgs, HasEveryArgumentWithItsDefault) {
  const std::map<std::string, std::string> defaults = {
      {"epoch", "1"},           {"step", "-1"},        {"eval_step", "100"},    {"nproc_per_node", "1"},
      {"nnode", "1"},           {"node_rank", "0"},    {"num_workers", "2"},    {"master_addr", "127.0.0.1"},
      {"master_port", "29500"}, {"autocast", "false"}, {"grad_scale", "false"}, {"early_stop", "-1"}};
  for (const auto& [name, value] : defaults) EXPECT_EQ(UnifiedArgs().get(name), value) << name;
  for (const char* name : {"model_name", "batch_size", "dataset_path", "lr", "device", "profiler", "profiler_path",
                           "warm_up", "max_seq_length", "checkpoint_path", "pretrained_path", "precision_align"}) {
    EXPECT_NO_THROW(UnifiedArgs().get(name)) << name;
  }
}

TEST(UnifiedArgs, MapsToExistingKeys) {
  for (const UnifiedArgument& argument : unified_arguments()) {
    if (argument.goes_to.find('.') == std::string::npos || argument.goes_to.starts_with("Model.")) continue;
    EXPECT_NE(Schema::native().key(argument.goes_to), nullptr) << argument.goes_to;
  }
}

TEST(UnifiedArgs, SetsOnlyWhatIsGiven) {
  EXPECT_THAT(sets({}), IsEmpty());
  EXPECT_THAT(sets({{"bs", "64"}, {"learning-rate", "1e-3"}, {"autocast", "Yes"}, {"dataset_path", "/d/it's 5"}}),
              ElementsAre("Global.local_batch_size=64 from --batch_size 64",
                          "data.path='/d/it''s 5' from --dataset_path /d/it's 5",
                          "Optimizer.lr.learning_rate=0.001 from --lr 0.001",
                          "Engine.mix_precision.enable=true from --autocast true"));
  EXPECT_THAT(sets({{"nproc_per_node", "2"}, {"master_port", "1234"}}), IsEmpty());
}

TEST(UnifiedArgs, AppliesSpecialMappings) {
  EXPECT_THAT(sets({{"eval_step", "50"}}),
              ElementsAre("Engine.eval_freq=50 from --eval_step 50", "Engine.run_mode=step from --eval_step 50"));
  EXPECT_THAT(sets({{"warm_up", "0.1"}}), ElementsAre("Optimizer.lr.warmup_rate=0.1 from --warm_up 0.1"));
  EXPECT_THAT(sets({{"warm_up", "20"}}), ElementsAre("Optimizer.lr.warmup_steps=20 from --warm_up 20.0"));
  EXPECT_THAT(sets({{"grad_scale", "no"}}), ElementsAre("Engine.mix_precision.scale_loss=1.0 from --grad_scale false"));
  EXPECT_THAT(sets({{"grad_scale", "1"}}), IsEmpty());
}

TEST(UnifiedArgs, ResolvesToAConfiguration) {
  const TempHome home;
  home.write("cases/tiny/case.yaml", kTinyCase);
  UnifiedArgs given = args({{"model_name", "tiny"},
                            {"batch_size", "16"},
                            {"step", "20"},
                            {"epoch", "3"},
                            {"lr", "1"},
                            {"device", "sdaa"},
                            {"nproc_per_node", "2"},
                            {"dataset_path", "123"},
                            {"eval_step", "5"},
                            {"warm_up", "0.5"}});
  given.apply_rules();
  ResolveRequest request = home.request("tiny");
  request.key = given.apply_to(request.key);
  request.sets = given.to_sets();
  const ResolvedCase found = resolve_case(request);
  EXPECT_EQ(found.config.find("Global.global_batch_size")->as_int(), 32);
  EXPECT_EQ(found.config.find("Engine.max_steps")->as_int(), 20);
  EXPECT_EQ(found.config.find("Engine.num_train_epochs")->as_int(), 1);
  EXPECT_EQ(found.config.find("Optimizer.lr.warmup_steps")->as_int(), 10);
  EXPECT_EQ(found.data.path, std::filesystem::current_path() / "123") << "a text, whatever it looks like";
  EXPECT_EQ(found.config.find("Global.device")->origin().text(), "--device sdaa");
}

TEST(UnifiedArgs, AcceptsDocumentedBooleansInAnyCase) {
  for (const char* yes : {"yes", "true", "t", "y", "1", "TRUE", "Yes", "T"})
    EXPECT_TRUE(args({{"autocast", yes}}).get_bool("autocast")) << yes;
  for (const char* no : {"no", "false", "f", "n", "0", "FALSE", "No"})
    EXPECT_FALSE(args({{"autocast", no}}).get_bool("autocast")) << no;
  for (const char* other : {"on", "off", "2", "yess", "", "None"})
    EXPECT_THROW(args({{"autocast", other}}), UsageError) << other;
}

TEST(UnifiedArgs, NamesWrongValuesAndNames) {
  EXPECT_THAT(error_of<UsageError>([] {
                args({{"batch_size", "many"}});
              }),
              HasSubstr("--batch_size must be an integer, found 'many'"));
  EXPECT_THAT(error_of<UsageError>([] { args({{"lr", "nan"}}); }), HasSubstr("--lr must be a number"));
  EXPECT_THAT(error_of<UsageError>([] { args({{"bacth_size", "1"}}); }), HasSubstr("did you mean 'batch_size'"));
  EXPECT_THROW(args({{"step", "99999999999999999999"}}), UsageError);
}

TEST(UnifiedArgs, LimitsAShortRunToOneEpoch) {
  UnifiedArgs both = args({{"step", "10"}, {"epoch", "5"}});
  EXPECT_THAT(both.apply_rules(), ElementsAre(HasSubstr("--epoch 5 is taken as 1")));
  EXPECT_EQ(both.get_int("epoch"), 1);
  UnifiedArgs unlimited = args({{"step", "-1"}, {"epoch", "5"}});
  EXPECT_THAT(unlimited.apply_rules(), IsEmpty());
  EXPECT_EQ(unlimited.get_int("epoch"), 5);
}

TEST(UnifiedArgs, ChecksRulesBetweenArguments) {
  const auto refused = [](const std::vector<std::pair<std::string, std::string>>& given) {
    return error_of<UsageError>([&] { args(given).apply_rules(); });
  };
  EXPECT_THAT(refused({{"precision_align", "y"}, {"nproc_per_node", "2"}}), HasSubstr("one process"));
  EXPECT_THAT(refused({{"precision_align", "y"}, {"nnode", "2"}}), HasSubstr("one process"));
  EXPECT_THAT(refused({{"nnode", "2"}, {"node_rank", "2"}}), HasSubstr("--node_rank"));
  EXPECT_THAT(refused({{"nnode", "2"}, {"node_rank", "-1"}}), HasSubstr("--node_rank"));
  EXPECT_THAT(refused({{"master_port", "70000"}}), HasSubstr("--master_port"));
  EXPECT_THAT(refused({{"step", "0"}}), HasSubstr("--step"));
  EXPECT_THAT(refused({{"nproc_per_node", "0"}}), HasSubstr("--nproc_per_node"));
  EXPECT_THAT(args({{"precision_align", "y"}}).apply_rules(), IsEmpty());
}

TEST(UnifiedArgs, TakesModelNodesAndProcessesFromTheKey) {
  const CaseKey key = args({{"nnode", "2"}, {"nproc_per_node", "4"}}).apply_to(CaseKey::parse("tiny"));
  EXPECT_EQ(key.text(), "tiny:libtorch::2:4:1");
  EXPECT_EQ(args({{"model_name", "tiny"}}).apply_to(CaseKey{}).model, "tiny");
  EXPECT_THAT(error_of<UsageError>([] {
                args({{"model_name", "other"}}).apply_to(CaseKey::parse("tiny"));
              }),
              HasSubstr("other"));
  EXPECT_THROW(args({{"model_name", "../x"}}).apply_to(CaseKey{}), UsageError);
  EXPECT_THROW(args({{"node_rank", "1"}}).apply_to(CaseKey::parse("tiny")), UsageError);
  EXPECT_NO_THROW(args({{"node_rank", "1"}}).apply_to(CaseKey::parse("tiny:libtorch::2:4:1")));
}

TEST(UnifiedArgs, ShowsTheCommandOneArgumentPerLine) {
  const UnifiedArgs given = args({{"bs", "8"}, {"dataset_path", "/my data"}, {"lr", "0.1"}, {"nproc_per_node", "2"}});
  const CaseKey key = given.apply_to(CaseKey::parse("tiny"));
  std::vector<std::string> argv = {"assay-worker", "train"};
  for (const std::string& argument : given.arguments()) argv.push_back(argument);
  EXPECT_EQ(render_command(given.environment(key), argv),
            "environment\n"
            "  MASTER_ADDR=127.0.0.1\n"
            "  MASTER_PORT=29500\n"
            "  NNODES=1\n"
            "  NODE_RANK=0\n"
            "  NPROC_PER_NODE=2\n"
            "  WORLD_SIZE=2\n"
            "arguments\n"
            "  assay-worker\n"
            "  train\n"
            "  --batch_size 8\n"
            "  --dataset_path '/my data'\n"
            "  --nproc_per_node 2\n"
            "  --lr 0.1\n");
}
