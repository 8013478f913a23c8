"""A FlagPerf tree is imported and its cases run: programs that read their configuration as FlagPerf's do, in the layouts
of pytorch, paddle and tensorflow2. Plain Python takes the place of the frameworks."""
import json
import unittest

import support

FRAMEWORKS = ("pytorch", "paddle", "tensorflow2")

# The rules of FlagPerf's driver: folder and file are joined, a file that is not there ends the program, None counts as
# not set, and unknown arguments may only be names of mutable parameters.
DRIVER = '''import argparse
import importlib
import os
import sys


def configure(base, mutable):
    parser = argparse.ArgumentParser()
    for name in ("data_dir", "extern_module_dir", "extern_config_dir", "extern_config_file"):
        parser.add_argument("--" + name)
    parser.add_argument("--enable_extern_config", action="store_true")
    known, rest = parser.parse_known_args()
    own = argparse.ArgumentParser()
    for name in mutable:
        own.add_argument("--" + name)
    given = vars(own.parse_args(rest))
    path = os.path.join(os.path.abspath(known.extern_config_dir), known.extern_config_file)
    if not os.path.exists(path):
        sys.exit(path + " does not exist")
    sys.path.append(os.path.dirname(path))
    module = importlib.import_module(os.path.basename(path)[:-3])
    sys.path.pop()
    values = {k: v for k, v in vars(module).items() if not k.startswith("__") and not callable(v)}
    values.update((k, v) for k, v in given.items() if v is not None)
    base.update((k, v) for k, v in values.items() if v is not None)
    base["data_dir"] = base.get("data_dir") or known.data_dir
    return base
'''
SCRIPT = '''import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.abspath(os.path.join(HERE, "../../")))
from driver import config_manager
import %(configs)s as case_config

config = {k: v for k, v in vars(case_config._base).items() if not k.startswith("__")}
config = config_manager.configure(config, %(mutable)s)


def event(name, value):
    print("[PerfLog] " + json.dumps({"event": name, "value": value, "metadata": {
        "file": __file__, "lineno": 1, "time_ms": 1700000000000, "rank": 0}}), flush=True)


with open(os.path.join(config["data_dir"], "accuracy")) as file:
    accuracy = float(file.read())
event("INIT_START", None)
event("TRAIN_START", None)
event("STEP_END", {"step": 1, "loss": 1.5})
event("FINISHED", {"e2e_time": 1.5, "converged": True, "final_accuracy": accuracy, "raw_train_time": 1.0,
                   "init_time": 0.5, "%(framework)s_batch": config["train_batch_size"], "flag": config["fp16"]})
print("SEEN", json.dumps({k: config[k] for k in ("train_batch_size", "fp16", "vendor")}))
'''


class FlagperfRunTest(support.CliTest):
    def setUp(self):
        super().setUp()
        self.write("benchmarks/driver/__init__.py", "")
        self.write("benchmarks/driver/config_manager.py", DRIVER)
        (self.folder / "data").mkdir()
        self.measure(0.8)
        for framework in FRAMEWORKS:
            self.write_case(framework)
        cases = "".join(f'    "tiny:{f}:X1:1:1:1": "{self.folder}/data",\n' for f in FRAMEWORKS)
        self.write("run_benchmarks/config/test_conf.py", 'VENDOR = "acme"\nCASES = {\n%s}\n' % cases)

    def measure(self, accuracy):
        (self.folder / "data/accuracy").write_text(str(accuracy))

    def write(self, name, text):
        path = self.folder / "FlagPerf/training" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def write_case(self, framework):
        case = f"benchmarks/tiny/{framework}/"
        mutable = ["vendor", "data_dir", "train_batch_size", "fp16"]
        self.write(case + "config/__init__.py", "from . import _base\n")
        self.write(case + "config/_base.py", "vendor: str = None\ndata_dir: str = None\ntrain_batch_size: int = 32\n"
                   "fp16: bool = True\ntarget_acc: float = 0.75\n")
        self.write(case + "config/mutable_params.py", f"mutable_params = {mutable}\n")
        # The driver of tensorflow2 gets an empty list of mutable names, so it refuses --vendor.
        self.write(case + "run_pretraining.py", SCRIPT % {
            "configs": "config", "framework": framework, "mutable": [] if framework == "tensorflow2" else mutable})
        self.write(f"acme/tiny-{framework}/config/config_X1x1x1.py",
                   'vendor = "acme"\ntrain_batch_size = 64\nfp16 = 0\n')

    def seen(self):
        lines = [line for path in (self.folder / "runs").rglob("*") if path.is_file() and path.suffix == ".log"
                 for line in path.read_text().splitlines() if line.startswith("SEEN ")]
        return [json.loads(line[5:]) for line in lines]

    def test_an_imported_tree_runs_in_every_layout(self):
        """Every program gets the values that were checked, ends well, and its accuracy is a result. What the verdict makes of
        FlagPerf's FINISHED line is not asked here."""
        self.assay("import", "flagperf", "FlagPerf")
        done = self.assay("--home", "imported", "run", "imported/campaign.yaml", expect=None)
        for step in ("tiny-pytorch", "tiny-paddle-paddle", "tiny-tensorflow2-tensorflow2"):
            self.assertRegex(done.stderr, rf"(?m)^Pass +{step}-X1-1x1 ")
        self.assertEqual(done.stdout.count(" 0.8000 "), len(FRAMEWORKS), done.stdout)
        seen = self.seen()
        self.assertEqual(len(seen), len(FRAMEWORKS), seen)
        for values in seen:
            self.assertEqual((values["train_batch_size"], bool(values["fp16"]), values["vendor"]), (64, False, "acme"))

    def test_zero_for_a_boolean_is_no_finding(self):
        done = json.loads(self.assay("import", "flagperf", "FlagPerf", "--json").stdout)
        self.assertEqual((done["not_read"], done["overrides"]), ([], []))
        text = (self.folder / "imported/vendors/acme/tiny/config_X1x1x1.yaml").read_text()
        self.assertIn("fp16: false", text.lower())


if __name__ == "__main__":
    unittest.main()
