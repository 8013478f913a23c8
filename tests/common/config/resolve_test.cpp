#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "config/case.h"
#include "temp_home.h"

using namespace assay;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace {

constexpr char kKey[] = "tiny:libtorch:chip:1:1:1";
constexpr char kVendorFile[] = "vendors/acme/tiny/config_chipx1x1.yaml";

class Resolve : public testing::Test {
 protected:
  Resolve() { home_.write("cases/tiny/case.yaml", kTinyCase); }

  ResolvedCase vendor(const std::string& text, Division division = Division::Closed) const {
    home_.write(kVendorFile, text);
    ResolveRequest request = home_.request(kKey);
    request.division = division;
    return resolve_case(request);
  }
  std::string refused_vendor(const std::string& text, Division division = Division::Closed) const {
    return error_of([&] { vendor(text, division); });
  }
  ResolvedCase with_case(const std::string& text) const {
    home_.write("cases/tiny/case.yaml", text);
    return resolve_case(home_.request("tiny"));
  }
  std::string refused_case(const std::string& text) const {
    return error_of([&] { with_case(text); });
  }
  ResolvedCase set(std::vector<Setting> sets) const {
    ResolveRequest request = home_.request("tiny");
    request.sets = std::move(sets);
    return resolve_case(request);
  }
  std::string refused_set(const std::string& text) const {
    return error_of([&] { set({text}); });
  }

  TempHome home_;
};

std::vector<std::string> override_texts(const ResolvedCase& found) {
  std::vector<std::string> texts;
  for (const Override& change : found.overrides) {
    texts.push_back(change.path + ": " + change.before.text() + " -> " + change.after.text() + " at " +
                    found.place(change.after.origin()) + (change.is_mutable ? "" : " (not mutable)"));
  }
  return texts;
}

// The case with a line replaced.
std::string tiny_with(const std::string& from, const std::string& to) {
  std::string text = kTinyCase;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

}  // namespace

// FlagPerf's hole: there, a vendor file that changes the target or the learning rate is applied with a printed line.
TEST_F(Resolve, RejectsImmutableOverridesInTheClosedDivision) {
  for (const char* text :
       {"target:\n  value: 0.5\n", "target: 0.5\n", "target:\n  goal: minimize\n",
        "Optimizer:\n  lr: {learning_rate: 0.2}\n", "config:\n  Optimizer: {lr: {learning_rate: 0.2}}\n", "lr: 0.2\n",
        "learning_rate: 0.2\n", "Engine: {num_train_epochs: 90}\n", "framework: pytorch\n", "Model: {width: 8}\n",
        "Model: {blocks: [1, 2]}\n", "Model: {name: other}\n", "data: {name: easier}\n",
        "Optimizer: {_inherited_: False, name: SGD, lr: {name: constant, learning_rate: 0.2}}\n",
        "_inherited_: False\nmodel: tiny\n", "Engine: {save_load: {ckpt_dir: /trained}}\n",
        "Optimizer: {grad_clip: {clip_norm: 2.0}}\n"}) {
    EXPECT_THAT(refused_vendor(text), AllOf(HasSubstr("config_chipx1x1.yaml:"), HasSubstr("closed"))) << text;
  }
  EXPECT_THAT(refused_vendor("\n\nOptimizer:\n  lr:\n    learning_rate: 0.2\n"),
              AllOf(HasSubstr("config_chipx1x1.yaml:5: "), HasSubstr("Optimizer.lr.learning_rate"),
                    HasSubstr("from 0.1 to 0.2"), HasSubstr("cases/tiny/case.yaml:3")));
}

TEST_F(Resolve, RecordsOverridesInTheOpenDivision) {
  const ResolvedCase found = vendor("target: {value: 0.5}\nOptimizer: {lr: {learning_rate: 0.2}}\n", Division::Open);
  EXPECT_EQ(found.target.value, 0.5);
  EXPECT_EQ(found.division, Division::Open);
  EXPECT_THAT(
      override_texts(found),
      ElementsAre("target.value: 0.9 -> 0.5 at vendors/acme/tiny/config_chipx1x1.yaml:1 (not mutable)",
                  "Optimizer.lr.learning_rate: 0.1 -> 0.2 at vendors/acme/tiny/config_chipx1x1.yaml:2 (not mutable)"));
}

TEST_F(Resolve, AcceptsMutableKeysAndSections) {
  const ResolvedCase found = vendor(
      "vendor: acme\nGlobal: {local_batch_size: 64}\nEngine: {mix_precision: {enable: true, dtype: float16}}\n"
      "Model: {dropout: 0}\n");
  EXPECT_EQ(found.division, Division::Closed);
  EXPECT_EQ(found.vendor, "acme");
  EXPECT_EQ(found.config.find("Global.local_batch_size")->as_int(), 64);
  EXPECT_EQ(found.config.find("Model.dropout")->as_double(), 0.0);
  EXPECT_TRUE(found.config.find("Model.dropout")->is_double());
  EXPECT_EQ(found.overrides.size(), 4u);
  EXPECT_EQ(found.config.find("Global.local_batch_size")->origin().layer, "vendor");
  // A key whose name only begins like a mutable one is not mutable.
  home_.write("cases/tiny/case.yaml", tiny_with("    dropout: 0.5\n", "    dropout: 0.5\n    dropout_seed: 1\n"));
  EXPECT_THAT(refused_vendor("Model: {dropout_seed: 2}\n"), HasSubstr("Model.dropout_seed"));
  EXPECT_THAT(refused_vendor("Global: {local_batch_size: 64, seed: 7}\n"), HasSubstr("Global.seed"));
}

TEST_F(Resolve, IgnoresRepeatedCaseValues) {
  EXPECT_TRUE(vendor("Optimizer: {lr: {learning_rate: 0.1}}\ntarget: {value: 0.9}\n").overrides.empty());
}

TEST_F(Resolve, LetsTheUserChooseDataFolders) {
  const ResolvedCase found = vendor("data_dir: /somewhere\ntrain_data: part\n");
  EXPECT_EQ(found.division, Division::Closed);
  EXPECT_EQ(found.data.path, "/somewhere");
  EXPECT_EQ(found.config.find("Data.Train.dataset.input_dir")->as_string(), "/somewhere/part");
  EXPECT_EQ(found.hash(), vendor("").hash());
}

TEST_F(Resolve, ResolvesRelativePathsOfTheCommandLineWhereTheUserStands) {
  ResolveRequest request = home_.request("tiny");
  request.sets = {"data.path=here/data", "Engine.save_load.pretrained=./weights/../model.safetensors",
                  "Engine.save_load.ckpt_dir=/absolute/checkpoint"};
  const ResolvedCase found = resolve_case(request);
  const fs::path here = fs::current_path();
  EXPECT_EQ(found.data.path, here / "here/data");
  EXPECT_EQ(found.config.find("Engine.save_load.pretrained")->as_string(), here / "model.safetensors");
  EXPECT_EQ(found.config.find("Engine.save_load.ckpt_dir")->as_string(), "/absolute/checkpoint");
}

TEST_F(Resolve, FindsInitialWeightsBesideTheData) {
  home_.write(kVendorFile, "data_dir: /somewhere\ninit_checkpoint: model/weights.safetensors\n");
  ResolveRequest request = home_.request(kKey);
  request.division = Division::Open;
  const ResolvedCase found = resolve_case(request);
  EXPECT_EQ(found.config.find("Engine.save_load.pretrained")->as_string(), "/somewhere/model/weights.safetensors");
  EXPECT_TRUE(found.config.find("Engine.save_load.ckpt_dir")->is_null()) << "it does not continue a training";
}

TEST_F(Resolve, KeepsRelativePathsOfFilesAsTheyAre) {
  EXPECT_EQ(vendor("data_dir: somewhere\n").data.path, "somewhere");
}

TEST_F(Resolve, FindsThePluginInItsVendorFolder) {
  const auto plugin = [&](const std::string& text) {
    return vendor("Global: {plugin: " + text + "}\n").config.find("Global.plugin")->as_string();
  };
  const fs::path folder = fs::absolute(home_.path()) / "vendors/acme";
  EXPECT_EQ(plugin("lib/acme.so"), folder / "lib/acme.so");
  EXPECT_EQ(plugin("acme.so"), folder / "acme.so");
  EXPECT_EQ(plugin("../shared/acme.so"), fs::absolute(home_.path()) / "vendors/shared/acme.so");
  EXPECT_EQ(plugin("/opt/acme.so"), "/opt/acme.so");
  EXPECT_EQ(plugin("acme"), "acme");
  EXPECT_EQ(vendor("Global: {plugin: acme}\n").hash(), vendor("").hash());
  ResolveRequest plain = home_.request("tiny");
  plain.sets = {"Global.plugin=lib/acme.so"};
  EXPECT_EQ(resolve_case(plain).config.find("Global.plugin")->as_string(), fs::absolute(home_.path()) / "lib/acme.so");
}

TEST_F(Resolve, TakesMutableOnlyFromTheCase) {
  for (const Division division : {Division::Closed, Division::Open}) {
    EXPECT_THAT(refused_vendor("mutable: [Optimizer]\nOptimizer: {lr: {learning_rate: 1}}\n", division),
                AllOf(HasSubstr("config_chipx1x1.yaml:1"), HasSubstr("mutable")));
  }
  EXPECT_THAT(refused_case(tiny_with("  - Model.dropout", "  - target.value")),
              AllOf(HasSubstr("case.yaml:6"), HasSubstr("cannot be mutable")));
  EXPECT_THAT(refused_case(tiny_with("  - Model.dropout", "  - Model.dropuot")),
              AllOf(HasSubstr("case.yaml:6"), HasSubstr("did you mean 'Model.dropout'")));
}

TEST_F(Resolve, LetsAVendorSetNull) {
  home_.write("cases/tiny/case.yaml",
              tiny_with("mutable:\n", "mutable:\n  - Engine.max_steps\n") + "  Engine: {max_steps: 5}\n");
  EXPECT_TRUE(vendor("Engine: {max_steps: null}\n").config.find("Engine.max_steps")->is_null());
  EXPECT_TRUE(vendor("Engine: {max_steps: }\n").config.find("Engine.max_steps")->is_null());
  EXPECT_TRUE(vendor("Engine: {max_steps: -1}\n").config.find("Engine.max_steps")->is_null());
}

TEST_F(Resolve, FindsVendorFilesByHardware) {
  home_.write(kVendorFile, "");
  EXPECT_EQ(resolve_case(home_.request(kKey)).vendor, "acme");
  EXPECT_EQ(resolve_case(home_.request("tiny")).vendor, "");
  home_.write("vendors/zeta/tiny/config_chipx1x1.yaml", "");
  EXPECT_THAT(error_of([&] { resolve_case(home_.request(kKey)); }),
              AllOf(HasSubstr("acme, zeta"), HasSubstr("--vendor")));
  ResolveRequest request = home_.request(kKey);
  request.vendor = "zeta";
  EXPECT_EQ(resolve_case(request).vendor, "zeta");
  request.vendor = "amce";
  EXPECT_THAT(error_of([&] { resolve_case(request); }), HasSubstr("did you mean 'acme'"));
  EXPECT_THAT(error_of([&] { resolve_case(home_.request("tiny:libtorch:chip:2:1:1")); }),
              HasSubstr("config_chipx2x1.yaml"));
  EXPECT_THAT(refused_vendor("vendor: zeta\n"), HasSubstr("ambiguous"));
  request.key.hardware.clear();
  request.vendor = "zeta";
  EXPECT_THAT(error_of([&] { resolve_case(request); }), HasSubstr("needs the hardware"));
}

TEST_F(Resolve, RequiresAVendorFileToNameItsOwnVendor) {
  EXPECT_THAT(refused_vendor("vendor: other\n"), AllOf(HasSubstr(":1"), HasSubstr("'other'"), HasSubstr("'acme'")));
}

TEST_F(Resolve, AppliesLayersInOrder) {
  home_.write("cases/tiny/case.yaml", tiny_with("mutable:\n", "mutable:\n  - Engine.logging_freq\n"));
  home_.write(kVendorFile, "Engine: {logging_freq: 2}\nModel: {dropout: 0.1}\n");
  ResolveRequest request = home_.request(kKey);
  EXPECT_EQ(resolve_case(request).config.find("Engine.logging_freq")->as_int(), 2);
  request.plan_file = home_.write("plan.yaml", "Engine: {logging_freq: 3}\n");
  const ResolvedCase planned = resolve_case(request);
  EXPECT_EQ(planned.config.find("Engine.logging_freq")->as_int(), 3);
  EXPECT_EQ(planned.config.find("Engine.logging_freq")->origin().layer, "plan");
  EXPECT_EQ(planned.config.find("Model.dropout")->as_double(), 0.1);
  request.sets = {"Engine.logging_freq=4"};
  const ResolvedCase all = resolve_case(request);
  EXPECT_EQ(all.config.find("Engine.logging_freq")->as_int(), 4);
  EXPECT_EQ(all.division, Division::Closed);
  EXPECT_THAT(override_texts(all),
              ElementsAre("Engine.logging_freq: 10 -> 2 at vendors/acme/tiny/config_chipx1x1.yaml:1",
                          "Model.dropout: 0.5 -> 0.1 at vendors/acme/tiny/config_chipx1x1.yaml:2",
                          "Engine.logging_freq: 2 -> 3 at plan.yaml:1",
                          "Engine.logging_freq: 3 -> 4 at --set Engine.logging_freq=4"));
  request.plan_file = home_.write("plan.yaml", "\nOptimizer: {weight_decay: 1}\n");
  EXPECT_THAT(error_of([&] { resolve_case(request); }),
              AllOf(HasSubstr("plan.yaml:2"), HasSubstr("Optimizer.weight_decay")));
}

TEST_F(Resolve, LetsTheCommandLineChangeEverything) {
  const ResolvedCase found = set({"Optimizer.lr.learning_rate=0.2", "target.value=0.5"});
  EXPECT_EQ(found.division, Division::Open);
  EXPECT_EQ(found.target.value, 0.5);
  EXPECT_EQ(set({"Global.local_batch_size=64"}).division, Division::Closed);
  EXPECT_EQ(found.config.find("Optimizer.lr.learning_rate")->origin().text(), "--set Optimizer.lr.learning_rate=0.2");
}

TEST_F(Resolve, NamesPlaceAndNearestForUnknownKeys) {
  EXPECT_THAT(
      refused_vendor("Global:\n  local_bach_size: 1\n"),
      AllOf(HasSubstr("config_chipx1x1.yaml:2: Global.local_bach_size"), HasSubstr("'Global.local_batch_size'")));
  EXPECT_THAT(refused_vendor("Globl: {}\n"), HasSubstr("'Global'"));
  EXPECT_THAT(refused_vendor("Global: {max_steps: 1}\n"), HasSubstr("'Engine.max_steps'"));
  EXPECT_THAT(refused_vendor("Model: {widht: 1}\n"),
              AllOf(HasSubstr("not a key of the case"), HasSubstr("'Model.width'")));
  EXPECT_THAT(refused_set("Engine.max_stepz=1"),
              AllOf(HasSubstr("--set Engine.max_stepz=1: "), HasSubstr("'Engine.max_steps'")));
  EXPECT_THAT(refused_vendor("Engine: {qqqqqqqqqqqqqqqqqq: 1}\n"), HasSubstr("known here: "));
  EXPECT_THAT(refused_case(tiny_with("  Optimizer:\n", "  Optimizer:\n    momentumm: 0.5\n")),
              HasSubstr("'Optimizer.momentum'"));
}

TEST_F(Resolve, NamesPlaceAndValueOfWrongTypes) {
  EXPECT_THAT(refused_set("Engine.max_steps=ten"), HasSubstr("Engine.max_steps must be an integer, found 'ten'"));
  EXPECT_THAT(refused_set("Engine.max_steps=1.5"), HasSubstr("must be an integer, found 1.5"));
  EXPECT_THAT(refused_set("Engine.max_steps=0"), HasSubstr("at least 1, or -1 for no limit, found 0"));
  EXPECT_THAT(refused_set("Engine.run_mode=steps"),
              AllOf(HasSubstr("one of step, epoch"), HasSubstr("did you mean 'step'")));
  EXPECT_THAT(refused_set("target.goal=max"), HasSubstr("one of maximize, minimize"));
  EXPECT_THAT(refused_set("Optimizer.lr.learning_rate=0"), HasSubstr("above 0"));
  EXPECT_THAT(refused_set("Optimizer.lr.learning_rate=.nan"), HasSubstr("finite"));
  EXPECT_THAT(refused_set("Optimizer.lr.learning_rate=null"), HasSubstr("must be a number, found null"));
  EXPECT_THAT(refused_set("Optimizer.momentum=1"), HasSubstr("below 1"));
  EXPECT_THAT(refused_set("Engine.mix_precision.enable=yes"), HasSubstr("true or false, found 'yes'"));
  EXPECT_THAT(refused_set("Engine=5"), HasSubstr("Engine must be a map of keys, found 5"));
  EXPECT_THAT(refused_set("Engine.mix_precision.custom_white_list=[a, 1]"), HasSubstr("list of text, found 1"));
  EXPECT_THAT(refused_set("Distributed.sharding.sharding_stage=4"), HasSubstr("at most 3"));
  EXPECT_THAT(refused_set("Model.width=wide"),
              AllOf(HasSubstr("Model.width must be an integer as in"), HasSubstr("case.yaml:12")));
  EXPECT_THAT(refused_set("Model.blocks=[1, a]"), HasSubstr("Model.blocks must be a list as in"));
  EXPECT_THAT(refused_set("Model.blocks.0=x"), HasSubstr("Model.blocks"));
  EXPECT_THAT(refused_set("Model.width=1.5"), HasSubstr("an integer"));
}

TEST_F(Resolve, RestrictsSchedulesToTheirOwnParameters) {
  EXPECT_THAT(refused_set("Optimizer.lr.gamma=0.5"),
              AllOf(HasSubstr("not a parameter of the schedule 'constant'"), HasSubstr("case.yaml:20")));
  const ResolvedCase found =
      set({"Optimizer.lr={_inherited_: False, name: multistep, learning_rate: 1, milestones: [5, 9]}"});
  EXPECT_EQ(to_line(found.config.find("Optimizer.lr")->to_json()),
            R"({"name":"multistep","learning_rate":1.0,"unit":"step",)"
            R"("warmup_steps":0,"warmup_rate":null,"milestones":[5,9],"gamma":0.1})");
  EXPECT_EQ(set({"Optimizer.lr.name=CosineAnnealingWithWarmupDecay"}).config.find("Optimizer.lr.name")->as_string(),
            "cosine");
}

TEST_F(Resolve, NamesMissingKeys) {
  EXPECT_THAT(refused_case(tiny_with("    name: tiny\n", "")), HasSubstr("Model.name is missing"));
  EXPECT_THAT(refused_case(tiny_with("model: tiny\n", "")), HasSubstr("model is missing"));
  EXPECT_THAT(refused_case(tiny_with("value: 0.9, ", "")), HasSubstr("target.value is missing"));
  EXPECT_THAT(refused_case(tiny_with("    local_batch_size: 32\n", "    seed: 1\n")),
              AllOf(HasSubstr("case.yaml:"), HasSubstr("Global.local_batch_size is missing")));
  EXPECT_THAT(refused_case(tiny_with("model: tiny", "model: other")), HasSubstr("the folder is called 'tiny'"));
  EXPECT_THAT(refused_case(""), HasSubstr("case.yaml"));
  EXPECT_THAT(error_of([&] { resolve_case(home_.request("tny")); }),
              AllOf(HasSubstr("did you mean 'tiny'"), HasSubstr("known: tiny")));
}

TEST_F(Resolve, AddsOptionalSectionsOnlyWhenMentioned) {
  const ResolvedCase plain = set({});
  EXPECT_EQ(plain.config.find("Compress"), nullptr);
  EXPECT_TRUE(plain.config.find("Optimizer.grad_clip")->is_null());
  EXPECT_TRUE(plain.config.find("Data.Eval")->is_null());
  const ResolvedCase more = set({"Optimizer.grad_clip={}", "Compress.Quantization.enable=true"});
  EXPECT_EQ(more.config.find("Optimizer.grad_clip.clip_norm")->as_double(), 1.0);
  EXPECT_EQ(more.config.find("Compress.Quantization.weight_bits")->as_int(), 8);
  EXPECT_EQ(more.config.find("Compress.Prune"), nullptr);
  EXPECT_TRUE(
      set({"Optimizer.grad_clip={}", "Optimizer.grad_clip=null"}).config.find("Optimizer.grad_clip")->is_null());
}

TEST_F(Resolve, ReadsFleetXFiles) {
  const ResolvedCase found = with_case(tiny_with("config:\n",
                                                 "config:\n  Engine:\n    save_load: {save_by_steps: 7}\n"
                                                 "    mix_precision: {use_pure_fp16: True}\n"));
  EXPECT_EQ(found.config.find("Engine.save_load.save_steps")->as_int(), 7);
  EXPECT_TRUE(found.config.find("Engine.mix_precision.enable")->as_bool());
  EXPECT_EQ(found.config.find("Engine.mix_precision.level")->as_string(), "O2");
  EXPECT_THAT(
      refused_case(tiny_with("config:\n", "config:\n  Engine: {save_load: {save_steps: 1, save_by_steps: 2}}\n")),
      AllOf(HasSubstr("save_by_steps"), HasSubstr("another name")));
}

TEST_F(Resolve, AcceptsSectionsAtTheTop) {
  std::string flat = kTinyCase;
  flat.replace(flat.find("config:\n"), 8, "");
  const size_t start = flat.find("  Global");
  std::string out = flat.substr(0, start);
  for (size_t at = start; at < flat.size();) {
    const size_t end = flat.find('\n', at) + 1;
    out += flat.substr(at + 2, end - at - 2);
    at = end;
  }
  const std::string hash = set({}).hash();
  EXPECT_EQ(with_case(out).hash(), hash);
  EXPECT_THAT(refused_case(out + "config:\n  Global: {seed: 1}\n"), HasSubstr("keep one of them"));
  EXPECT_THAT(refused_case(out + "config:\n  target: {value: 1}\n"), HasSubstr("belongs at the top"));
}

TEST_F(Resolve, HashesOnlyWhatIsMeasured) {
  const std::string plain = set({}).hash();
  EXPECT_EQ(plain.size(), 64u);
  EXPECT_EQ(set({"Engine.save_load.output_dir=/x", "data.path=/y"}).hash(), plain);
  EXPECT_EQ(set({"Optimizer.lr.learning_rate=1e-1"}).hash(), plain);
  EXPECT_NE(set({"Optimizer.lr.learning_rate=0.2"}).hash(), plain);
  EXPECT_NE(set({"target.value=0.91"}).hash(), plain);
  EXPECT_NE(set({"Global.seed=1"}).hash(), plain);
  // The order of keys does not matter.
  EXPECT_EQ(with_case(tiny_with("    width: 16\n    dropout: 0.5\n", "    dropout: 0.5\n    width: 16\n")).hash(),
            plain);
}

TEST_F(Resolve, KeepsKeysOfForeignCases) {
  home_.write("cases/bert/case.yaml",
              "model: bert\nframework: pytorch_2.0\nentry: [python3, run.py]\ntarget: {metric: mlm, value: 0.7}\n"
              "mutable: [train_batch_size]\nconfig: {train_batch_size: 8, lr: 0.1, opt: {beta: 0.9}}\n");
  home_.write("vendors/acme/bert/config_chipx1x8.yaml", "train_batch_size: 16\n");
  const ResolvedCase found = resolve_case(home_.request("bert:pytorch:chip:1:8:1"));
  EXPECT_FALSE(found.is_native());
  EXPECT_THAT(found.entry, ElementsAre("python3", "run.py"));
  EXPECT_EQ(to_line(found.config_json()), R"({"train_batch_size":16,"lr":0.1,"opt":{"beta":0.9}})");
  home_.write("vendors/acme/bert/config_chipx1x8.yaml", "lr: 0.2\n");
  EXPECT_THAT(error_of([&] { resolve_case(home_.request("bert:pytorch:chip:1:8:1")); }), HasSubstr("closed"));
  home_.write("vendors/acme/bert/config_chipx1x8.yaml", "train_bach_size: 2\n");
  EXPECT_THAT(error_of([&] { resolve_case(home_.request("bert:pytorch:chip:1:8:1")); }),
              HasSubstr("'train_batch_size'"));
  EXPECT_THAT(error_of([&] { resolve_case(home_.request("bert:libtorch:chip:1:8:1")); }),
              HasSubstr("asks for libtorch"));
  EXPECT_EQ(resolve_case(home_.request("bert")).key.framework, "pytorch_2.0");
  EXPECT_THAT(refused_case(tiny_with("model: tiny", "model: tiny\nentry: [a]")), HasSubstr("native case has no entry"));
}

TEST_F(Resolve, NamesBadHashesInData) {
  EXPECT_THAT(refused_case(std::string(kTinyCase) + "data:\n  sha256: {a.gz: 12}\n"),
              AllOf(HasSubstr("case.yaml"), HasSubstr("a.gz")));
  EXPECT_THAT(refused_case(std::string(kTinyCase) + "data:\n  sha256: {a.gz: xyz}\n"), HasSubstr("64 hexadecimal"));
}

TEST_F(Resolve, SurvivesHostileCaseFiles) {
  for (const char* text : {"[]",
                           "5",
                           "a",
                           "model: [tiny]",
                           "model: {a: b}\n",
                           "framework: [1]\nmodel: tiny\n",
                           "mutable: {}\n",
                           "config: 5\n",
                           "config: [1]\n",
                           "target: accuracy\n",
                           "Data: {Train: null}\n",
                           "model: tiny\nOptimizer: null\n",
                           "Distributed: null\n",
                           "data: null\n",
                           "target: null\n",
                           "mutable: [[1]]\n",
                           "entry: {}\n",
                           "Model: []\n",
                           "\"\": 1\n",
                           "a.b: 1\n",
                           "_base_: .\n"}) {
    EXPECT_THROW(with_case(text), Error) << text;
    EXPECT_THROW(with_case(std::string(kTinyCase) + text), Error) << text;
  }
}

// Fashion-MNIST's package installs what the cases read: found without being prepared, unless it was.
TEST_F(Resolve, FindsADataSetInstalledByAPackage) {
  const fs::path installed = "/usr/share/datasets/fashion-mnist";
  if (!fs::is_directory(installed)) GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  const TempFolder prepared("data");
  const char* old = std::getenv("ASSAY_DATA");
  const std::string before = old ? old : "";
  ::setenv("ASSAY_DATA", prepared.path().c_str(), 1);
  const std::string text = std::string(kTinyCase) + "data: {name: fashion-mnist}\n";
  EXPECT_EQ(with_case(text).data.path, installed);
  make_folder(prepared.path() / "fashion-mnist");
  EXPECT_EQ(with_case(text).data.path, prepared.path() / "fashion-mnist");
  old ? ::setenv("ASSAY_DATA", before.c_str(), 1) : ::unsetenv("ASSAY_DATA");
}

TEST_F(Resolve, UsesPreparedDataWithoutAFolder) {
  const char* old = std::getenv("ASSAY_DATA");
  const std::string before = old ? old : "";
  ::setenv("ASSAY_DATA", "/prepared", 1);
  const ResolvedCase found = with_case(std::string(kTinyCase) + "data: {name: speeches}\n");
  EXPECT_EQ(found.data.path, fs::path("/prepared/speeches"));
  EXPECT_EQ(found.config.find("Data.Train.dataset.input_dir")->as_string(), "/prepared/speeches");
  const std::string hash = found.hash();
  ::setenv("ASSAY_DATA", "/elsewhere", 1);
  EXPECT_EQ(resolve_case(home_.request("tiny")).hash(), hash) << "where it lies is not what is measured";
  EXPECT_EQ(set({"data.path=/own"}).data.path, fs::path("/own"));
  EXPECT_EQ(with_case(kTinyCase).data.path, std::nullopt);
  EXPECT_EQ(with_case(std::string(kTinyCase) + "data: {name: ../x}\n").data.path, std::nullopt);
  old ? ::setenv("ASSAY_DATA", before.c_str(), 1) : ::unsetenv("ASSAY_DATA");
}
