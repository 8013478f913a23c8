"""assay import flagperf: a tree in FlagPerf's form becomes cases, vendors and a campaign that load; what vendors change
without leave is named, and refused by the closed division."""
import json
import os
import subprocess
import sys
import unittest

import support

BASE = """vendor: str = None
data_dir: str = None
lr: float = 0.1
seed: int = 42
betas = (0.9, 0.999)
train_batch_size: int = 32
target_acc1: float = 75.5
"""
KEY = "tiny:pytorch:X1:1:8:1"


class ImportTest(support.CliTest):
    def setUp(self):
        super().setUp()
        self.write("run_benchmarks/config/test_conf.py",
                   'VENDOR = "acme"\nCLEAR_CACHES = False\nROOT = "/data"\n'
                   'CASES = {\n    "tiny:pytorch_1.8:X1:1:8:1": ROOT + "/tiny",\n}\n')
        self.write("run_benchmarks/config/cluster_conf.py", 'HOSTS = ["10.0.0.1"]\nSSH_PORT = "22"\n')
        self.write("benchmarks/tiny/pytorch/config/_base.py", BASE)
        self.write("benchmarks/tiny/pytorch/config/mutable_params.py",
                   'mutable_params = ["vendor", "data_dir", "train_batch_size"]\n')
        self.write("benchmarks/tiny/pytorch/run_pretraining.py", "")
        self.config("vendor = 'acme'\ntrain_batch_size = 64\n")

    def write(self, name, text):
        path = self.folder / "FlagPerf" / "training" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def config(self, text):
        self.write("acme/tiny-pytorch/config/config_X1x1x8.py", text)

    def take(self, *arguments, expect=0):
        return self.assay("import", "flagperf", "FlagPerf", *arguments, expect=expect)

    def test_imports_and_loads_a_clean_tree(self):
        done = self.take()
        self.assertIn("No vendor changes what is immutable", done.stdout)
        self.assertEqual(sorted(str(p.relative_to(self.folder / "imported"))
                                for p in (self.folder / "imported").rglob("*") if p.is_file()),
                         ["campaign.yaml", "cases/tiny/assay_pytorch_config.py", "cases/tiny/case.yaml",
                          "vendors/acme/tiny/config_X1x1x8.yaml", "vendors/acme/vendor.yaml"])
        resolved = json.loads(self.assay("--home", "imported", "config", KEY, "--json").stdout)
        self.assertEqual(resolved["division"], "closed")
        values = {v["key"]: v["value"] for v in resolved["values"]}
        self.assertEqual((values["train_batch_size"], values["lr"], values["target.value"]), (64, 0.1, 75.5))
        self.assay("--home", "imported", "check", "vendor", "acme")

    def test_names_and_rejects_immutable_overrides(self):
        self.config("train_batch_size = 64\nlr = 0.5\ntarget_acc1 = 20\n")
        found = json.loads(self.take("--json", expect=1).stdout)
        self.assertEqual([(c["vendor"], c["case"], c["key"], c["base_value"], c["vendor_value"], c["file"], c["line"])
                          for c in found["overrides"]],
                         [("acme", "tiny", key, base, value,
                           "training/acme/tiny-pytorch/config/config_X1x1x8.py", line)
                          for key, base, value, line in [("lr", 0.1, 0.5, 2), ("target_acc1", 75.5, 20, 3)]])
        self.assertEqual(found["not_read"], [])
        refused = self.assay("--home", "imported", "config", KEY, expect=2)
        self.assertIn("closed division", refused.stderr)
        opened = json.loads(self.assay("--home", "imported", "config", KEY, "--division", "open", "--json").stdout)
        self.assertEqual(opened["division"], "open")
        checked = self.assay("--home", "imported", "check", "vendor", expect=1).stdout
        self.assertIn("config_X1x1x8.yaml:4: lr is not mutable", checked)
        self.assertIn("config_X1x1x8.yaml:5: target_acc1 is not mutable", checked)

    def test_names_what_was_not_read(self):
        self.config("import torch\nif torch.cuda.is_available():\n    train_batch_size = 64\n")
        done = self.take(expect=1)
        self.assertRegex(done.stdout, r"config_X1x1x8\.py:2 +train_batch_size +'if' is not executed")

    def test_does_not_execute_python(self):
        self.config("open('executed', 'w')\n__import__('os').system('touch executed')\nlr = 0.1\n")
        self.take(expect=1)
        self.assertEqual(list(self.folder.rglob("executed")), [])

    def test_keeps_existing_files(self):
        self.take()
        before = (self.folder / "imported/cases/tiny/case.yaml").read_text()
        self.config("train_batch_size = 8\n")
        done = self.take(expect=2)
        self.assertIn("cases/tiny/case.yaml", done.stderr)
        self.assertEqual((self.folder / "imported/cases/tiny/case.yaml").read_text(), before)
        self.take("--force")
        self.assertIn("train_batch_size: 8", (self.folder / "imported/vendors/acme/tiny/config_X1x1x8.yaml").read_text())

    def test_explains_a_missing_tree(self):
        (self.folder / "empty").mkdir()
        self.assertIn("no FlagPerf tree", self.assay("import", "flagperf", "empty", expect=2).stderr)
        self.assay("import", "flagperf", "nowhere", expect=2)

    def test_passes_the_checked_values_to_the_script(self):
        """As FlagPerf loads a vendor's file: as a module, whose names count. Objects that YAML cannot hold stay."""
        self.config("scaler = object()\nbetas = (0.9, 0.999)\ntrain_batch_size = 64\nlr = 0.5\n")
        self.take(expect=1)
        case = self.folder / "imported/cases/tiny"
        (self.folder / "config.json").write_text(json.dumps(
            {"vendor": "acme", "lr": 0.1, "seed": 42.0, "betas": [0.9, 0.999], "train_batch_size": 64.0, "gone": None}))
        code = ("import sys; sys.path.insert(0, sys.argv[1]); import assay_pytorch_config as c\n"
                "print(sorted((k, type(v).__name__, v if k != 'scaler' else 0) for k, v in vars(c).items()"
                " if not k.startswith('_')))")
        env = dict(os.environ, ASSAY_CONFIG=str(self.folder / "config.json"), ASSAY_FLAGPERF_CONFIG=str(
            self.folder / "FlagPerf/training/acme/tiny-pytorch/config/config_X1x1x8.py"))
        done = subprocess.run([sys.executable, "-c", code, str(case)], env=env, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        # lr is what assay has checked, not what the vendor's file says; types are those of FlagPerf's own files.
        self.assertEqual(eval(done.stdout), [
            ("betas", "tuple", (0.9, 0.999)), ("lr", "float", 0.1), ("scaler", "object", 0),
            ("train_batch_size", "int", 64), ("vendor", "str", "acme")])


if __name__ == "__main__":
    unittest.main()
