#include "import/flagperf/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "flagperf_tree.h"
#include "vendor/check.h"

using namespace assay;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace {

constexpr char kTinyKey[] = "tiny:pytorch:X1:1:8:1";

// Imports the tree and writes it to `out`; the issues as text, one a line.
struct Imported {
  explicit Imported(const FlagperfHome& home) : folder(home.path() / "out") {
    const FlagperfTree tree = read_flagperf_tree(home.tree());
    result = import_flagperf(tree);
    write_import(result, folder, true);
  }
  std::string lost() const {
    std::string out;
    for (const PythonIssue& issue : result.not_read) {
      out += issue.file + ":" + std::to_string(issue.line) + " [" + join(issue.sets, ",") + "] " + issue.what + "\n";
    }
    return out;
  }
  std::string notes() const {
    std::string out;
    for (const PythonIssue& issue : result.notes)
      out += issue.file + ":" + std::to_string(issue.line) + " " + issue.what + "\n";
    return out;
  }
  std::string overrides() const {
    std::string out;
    for (const FlagperfOverride& change : result.overrides) {
      out += fmt::format("{} {} {}: {} -> {} ({}:{}, {})\n", change.vendor, change.case_name, change.key, change.base,
                         change.value, change.file, change.line, change.base_place);
    }
    return out;
  }
  ResolvedCase resolve(const std::string& key, Division division = Division::Closed) const {
    ResolveRequest request{.home = folder, .key = CaseKey::parse(key)};
    request.division = division;
    return resolve_case(request);
  }
  fs::path folder;
  FlagperfImport result;
};

}  // namespace

TEST(FlagperfImport, LoadsAWholeTree) {
  const FlagperfHome home;
  const Imported imported(home);
  EXPECT_EQ(imported.lost(), "");
  EXPECT_EQ(imported.overrides(), "");
  const ResolvedCase resolved = imported.resolve(kTinyKey);
  EXPECT_EQ(resolved.division, Division::Closed);
  EXPECT_EQ(resolved.framework, "pytorch");
  EXPECT_EQ(resolved.target.metric, "acc1");
  EXPECT_EQ(resolved.target.value, 75.5);
  EXPECT_EQ(resolved.config.find("train_batch_size")->as_int(), 64);
  EXPECT_EQ(resolved.config.find("vendor")->as_string(), "acme");
  EXPECT_EQ(resolved.config.find("ddp_type")->as_string(), "native");
  EXPECT_TRUE(resolved.config.find("max_steps")->is_null());
  EXPECT_EQ(resolved.config.find("betas")->text(), "[0.9, 0.999]");
  EXPECT_THAT(resolved.entry, Contains((home.tree() / "training/benchmarks/tiny/pytorch/run_pretraining.py").string()));
  for (const VendorCheck& check : check_vendor(imported.folder, "acme", "/nowhere")) {
    EXPECT_TRUE(check.passed) << check.check << join(check.problems, "; ");
  }
}

TEST(FlagperfImport, WritesTheCampaign) {
  const FlagperfHome home;
  const std::string text = read_file(Imported(home).folder / "campaign.yaml");
  EXPECT_THAT(text, AllOf(HasSubstr("vendor: acme\n"), HasSubstr("division: closed\n"), HasSubstr("launcher: ssh\n"),
                          HasSubstr("hosts: [10.0.0.1, 10.0.0.2]\n"), HasSubstr("  port: 2222\n"),
                          HasSubstr("clear_caches: true\n"), HasSubstr("\"tiny:pytorch_1.8:X1:1:8:3\": /data/tiny/\n"),
                          Not(HasSubstr("off:"))));
}

// FlagPerf lets vendors change anything with nothing but a printed line. Here the import names each such change, keeps
// it as it is, and the closed division refuses it.
TEST(FlagperfImport, ReportsAndRejectsImmutableOverrides) {
  const FlagperfHome home;
  home.training("acme/tiny-pytorch/config/config_common.py", "target_acc1 = 20\n");
  home.config("from config_common import *\ntrain_batch_size = 64\nlr = 0.5\nbetas = (0.9, 0.999)\n");
  const Imported imported(home);
  EXPECT_EQ(imported.overrides(),
            "acme tiny target_acc1: 75.5 -> 20 (training/acme/tiny-pytorch/config/config_common.py:1, "
            "training/benchmarks/tiny/pytorch/config/_base.py:5)\n"
            "acme tiny lr: 0.1 -> 0.5 (training/acme/tiny-pytorch/config/config_X1x1x8.py:3, "
            "training/benchmarks/tiny/pytorch/config/_base.py:3)\n");
  EXPECT_THAT(error_of([&] { imported.resolve(kTinyKey); }), HasSubstr("in the closed division"));
  const ResolvedCase open = imported.resolve(kTinyKey, Division::Open);
  std::vector<std::string> changed;
  for (const Override& change : open.overrides) {
    if (!change.is_mutable) changed.push_back(change.path);
  }
  EXPECT_THAT(changed, testing::UnorderedElementsAre("lr", "target_acc1"));
  EXPECT_EQ(open.division, Division::Open);
  EXPECT_EQ(open.target.value, 75.5);
  EXPECT_THAT(read_file(imported.folder / "vendors/acme/tiny/config_X1x1x8.yaml"),
              HasSubstr("lr: 0.5  # immutable: 0.1 in the case; the closed division refuses this"));
  EXPECT_THAT(read_file(imported.folder / "campaign.yaml"), HasSubstr("needs division: open"));
}

TEST(FlagperfImport, ReportsAnUnreadableOverride) {
  const FlagperfHome home;
  home.base("vendor: str = None\nlr = compute()\nseed = 1\nmomentum = 0.9\n");
  home.config("lr = 0.5\nif big():\n    seed = 2\nmomentum = 0.9\n");
  const Imported imported(home);
  EXPECT_EQ(
      imported.overrides(),
      "acme tiny lr: not read: compute(...) is not called -> 0.5 "
      "(training/acme/tiny-pytorch/config/config_X1x1x8.py:1, training/benchmarks/tiny/pytorch/config/_base.py:2)\n"
      "acme tiny seed: 1 -> not read: 'if' is not executed "
      "(training/acme/tiny-pytorch/config/config_X1x1x8.py:2, training/benchmarks/tiny/pytorch/config/_base.py:3)\n");
  EXPECT_THAT(error_of([&] { imported.resolve(kTinyKey); }), HasSubstr("lr may not be changed"));
}

// Any name may come from a file that was not read, so none counts as the vendor's own.
TEST(FlagperfImport, ImportsFromElsewhereMakeNamesOfVendorsSuspect) {
  const FlagperfHome home;
  home.base("from somewhere.far import *\nvendor: str = None\n");
  home.config("mystery = 1\n");
  const Imported imported(home);
  EXPECT_THAT(imported.overrides(),
              HasSubstr("acme tiny mystery: not known: the case imports names from elsewhere -> 1"));
  EXPECT_THAT(error_of([&] { imported.resolve(kTinyKey); }), HasSubstr("mystery may not be changed"));
}

TEST(FlagperfImport, KeepsTargetsImmutable) {
  const FlagperfHome home;
  home.training("benchmarks/tiny/pytorch/config/mutable_params.py",
                "mutable_params = ['vendor', 'target_acc1', 'gone']\n");
  home.config("target_acc1 = 1.0\n");
  const Imported imported(home);
  EXPECT_THAT(imported.overrides(), HasSubstr("target_acc1: 75.5 -> 1.0"));
  EXPECT_THAT(imported.notes(), AllOf(HasSubstr("'target_acc1' is the target"), HasSubstr("'gone' is in no list")));
  home.base("vendor: str = None\ntarget: float = 0.5\n");
  home.config("target = 0.1\n");
  EXPECT_THAT(Imported(home).overrides(), HasSubstr("target.value: 0.5 -> 0.1"));
  EXPECT_THAT(error_of([&] { Imported(home).resolve(kTinyKey); }), HasSubstr("target.value may not be changed"));
}

TEST(FlagperfImport, ExpectsLossesToFall) {
  const FlagperfHome home;
  home.base("vendor: str = None\ntarget_val_loss: float = 0.48\ntarget_lang = 'de'\n");
  const ResolvedCase resolved = Imported(home).resolve(kTinyKey);
  EXPECT_EQ(resolved.target.metric, "val_loss");
  EXPECT_EQ(resolved.target.goal, Goal::Minimize);
}

TEST(FlagperfImport, KeepsOneNumberTypePerKey) {
  const FlagperfHome home;
  home.base("vendor: str = None\nlr: float = 24\nwarmup = 0\nsteps = [1, 2]\nmixed = [1, 0.5]\n");
  home.training("benchmarks/tiny/pytorch/config/mutable_params.py",
                "mutable_params = ['vendor', 'lr', 'warmup', 'steps', 'mixed']\n");
  home.config("lr = 1\nwarmup = 0.1\nsteps = [0.5, 1]\nmixed = (2, 3)\n");
  const Imported imported(home);
  EXPECT_EQ(imported.lost(), "");
  const ResolvedCase resolved = imported.resolve(kTinyKey);
  EXPECT_EQ(resolved.config.find("lr")->text(), "1.0");
  EXPECT_EQ(resolved.config.find("warmup")->text(), "0.1");
  EXPECT_EQ(resolved.config.find("steps")->text(), "[0.5, 1.0]");
  EXPECT_EQ(resolved.config.find("mixed")->text(), "[2.0, 3.0]");
}

TEST(FlagperfImport, NamesOtherTypesForLaterRejection) {
  const FlagperfHome home;
  home.config("train_batch_size = 'many'\n");
  const Imported imported(home);
  EXPECT_THAT(imported.lost(),
              HasSubstr("config_X1x1x8.py:1 [train_batch_size] train_batch_size is text where the case"));
  EXPECT_THAT(error_of([&] { imported.resolve(kTinyKey); }), HasSubstr("must be an integer"));
}

TEST(FlagperfImport, IgnoresNoneOfAVendor) {
  const FlagperfHome home;
  home.config("lr = None\nnothing = None\n");
  const Imported imported(home);
  EXPECT_EQ(imported.overrides(), "");
  EXPECT_THAT(imported.notes(), HasSubstr("lr = None is without effect"));
  EXPECT_EQ(imported.resolve(kTinyKey).config.find("lr")->text(), "0.1");
}

TEST(FlagperfImport, NamesOfOursAreNotTakenOver) {
  const FlagperfHome home;
  home.base("vendor: str = None\ndata = None\ntask = 'translation'\nconfig = 'x'\n__secret__ = 1\n");
  const Imported imported(home);
  EXPECT_THAT(imported.lost(),
              AllOf(HasSubstr("_base.py:3 [task]"), HasSubstr("_base.py:4 [config]"), Not(HasSubstr("[data]"))));
  imported.resolve(kTinyKey);
}

TEST(FlagperfImport, ImportsSeveralFrameworksOfOneModel) {
  const FlagperfHome home;
  home.training("benchmarks/tiny/paddle/config/_base.py", "vendor = None\nlr = 0.2\n");
  home.training("benchmarks/tiny/paddle/config/mutable_params.py", "mutable_params = ['vendor']\n");
  home.training("benchmarks/tiny/paddle/run_pretraining.py", "");
  home.training("acme/tiny-paddle/config/config_X1x1x8.py", "vendor = 'acme'\n");
  const Imported imported(home);
  EXPECT_THAT(imported.result.cases, ElementsAre("tiny-paddle", "tiny"));
  EXPECT_EQ(imported.resolve("tiny-paddle:paddle_2.5:X1:1:8:1").config.find("lr")->text(), "0.2");
  EXPECT_EQ(imported.resolve(kTinyKey).config.find("lr")->text(), "0.1");
}

TEST(FlagperfImport, ImportsEnvironmentAndRequirements) {
  const FlagperfHome home;
  home.training("acme/tiny-pytorch/config/environment_variables.sh",
                "export A=1\nexport B='$HOME'\nexport C=$(date)\n");
  home.training("acme/tiny-pytorch/config/requirements.txt", "# packages\nh5py==3.1\n");
  const Imported imported(home);
  EXPECT_THAT(read_file(imported.folder / "vendors/acme/tiny/environment"), testing::EndsWith("\nA=1\n"));
  EXPECT_EQ(read_file(imported.folder / "vendors/acme/tiny/requirements.txt"), "h5py==3.1\n");
  EXPECT_THAT(imported.lost(),
              AllOf(HasSubstr("environment_variables.sh:2 [B]"), HasSubstr("environment_variables.sh:3 [C]")));
  EXPECT_THAT(imported.notes(), HasSubstr("assay installs nothing"));
}

TEST(FlagperfImport, NamesMissingCases) {
  const FlagperfHome home;
  home.training("run_benchmarks/config/test_conf.py",
                "VENDOR = 'acme'\nCASES = {\n 'gone:pytorch:X1:1:8:1': '/d',\n 'tiny:pytorch:X1:2:8:1': '/d',\n"
                " 'tiny:pytorch:X1': '/d',\n}\n");
  const Imported imported(home);
  EXPECT_THAT(imported.lost(), AllOf(HasSubstr("test_conf.py:3"), HasSubstr("benchmarks/gone/pytorch is not there"),
                                     HasSubstr("test_conf.py:4"), HasSubstr("config_X1x2x8.py is not there"),
                                     HasSubstr("test_conf.py:5"), HasSubstr("has 3 parts")));
  EXPECT_THAT(imported.notes(), HasSubstr("the campaign has no cases"));
}

TEST(FlagperfImport, NamesSettingsWithoutAPlace) {
  const FlagperfHome home;
  home.training("run_benchmarks/config/test_conf.py",
                "VENDOR = 'acme'\nACCE_CONTAINER_OPT = ' --gpus all'\nCLEAR_CACHES = True\nSOMETHING = 3\n"
                "CASES = {'tiny:pytorch:X1:1:8:1': '/d'}\n");
  const Imported imported(home);
  EXPECT_THAT(imported.notes(),
              AllOf(HasSubstr("test_conf.py:2 "), HasSubstr("ACCE_CONTAINER_OPT was not taken over: cases run without"),
                    HasSubstr("test_conf.py:4 "), HasSubstr("SOMETHING was not taken over"),
                    Not(HasSubstr("CLEAR_CACHES")), Not(HasSubstr("CASES was"))));
}

TEST(FlagperfImport, NamesAFileThatIsNotPythonAndImportsTheRest) {
  const FlagperfHome home;
  home.training("acme/tiny-pytorch/config/config_X1x1x1.py", "lr = (\n");
  const Imported imported(home);
  EXPECT_THAT(imported.lost(), HasSubstr("config_X1x1x1.py:1 [] this is not Python"));
  EXPECT_FALSE(imported.result.files.contains("vendors/acme/tiny/config_X1x1x1.yaml"));
  imported.resolve(kTinyKey);
}

TEST(FlagperfImport, ReportsOtherFrameworksForManualWork) {
  const FlagperfHome home;
  home.training("benchmarks/big/megatron/run_pretraining.py", "");
  home.training("acme/big-megatron/config/config_X1x1x8.py", "seqlength = 4096\n");
  const Imported imported(home);
  EXPECT_THAT(imported.lost(), HasSubstr("start_megatron_task.py"));
  EXPECT_THAT(imported.notes(), HasSubstr("FlagPerf holds vendors' files against nothing"));
  EXPECT_EQ(imported.resolve("big:megatron:X1:1:8:1").config.find("seqlength")->as_int(), 4096);
}

TEST(FlagperfImport, RejectsAMissingTree) {
  const TempHome home;
  EXPECT_THAT(error_of([&] { read_flagperf_tree(home.path()); }), HasSubstr("is no FlagPerf tree"));
  const FlagperfHome tree;
  EXPECT_EQ(read_flagperf_tree(tree.tree() / "training").cases.size(), 1u);
}

TEST(WriteImport, WritesAllOrNothing) {
  const TempHome home;
  FlagperfImport import;
  import.files = {{"a/one.yaml", "1"}, {"b/two.yaml", "2"}, { "campaign.yaml", "3" }};
  home.write("out/b/two.yaml", "mine");
  EXPECT_THAT(error_of<UsageError>([&] { write_import(import, home.path() / "out", false); }), HasSubstr("b/two.yaml"));
  EXPECT_FALSE(fs::exists(home.path() / "out/a"));
  EXPECT_EQ(read_file(home.path() / "out/b/two.yaml"), "mine");
  // The last one cannot be placed: a folder is in the way.
  home.write("out/campaign.yaml/file", "x");
  error_of<InfrastructureError>([&] { write_import(import, home.path() / "out", true); });
  EXPECT_FALSE(fs::exists(home.path() / "out/a"));
  EXPECT_EQ(read_file(home.path() / "out/b/two.yaml"), "mine");
  EXPECT_FALSE(fs::exists(home.path() / "out/.import.tmp"));
  fs::remove_all(home.path() / "out/campaign.yaml");
  write_import(import, home.path() / "out", true);
  EXPECT_EQ(read_file(home.path() / "out/b/two.yaml"), "2");
  EXPECT_FALSE(fs::exists(home.path() / "out/.import.tmp"));
}
