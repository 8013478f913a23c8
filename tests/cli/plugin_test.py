"""Vendors' plugins through the whole program: check-plugin, and a training with one."""
import os
import subprocess
import tempfile
import unittest

import worker_support
from worker_support import WORKER, WorkerTest

PLUGINS = os.environ.get("ASSAY_TEST_PLUGINS", os.path.join(worker_support.BIN, "../test_plugins"))


def check(plugin, **env):
    return subprocess.run([WORKER, "check-plugin", plugin], text=True, capture_output=True, env={**os.environ, **env})


class PluginTest(WorkerTest):
    def test_checks_plugins(self):
        good = check("reference")
        self.assertEqual(good.returncode, 0, good.stdout + good.stderr)
        self.assertIn("ok   exact_resume\n", good.stdout)
        self.assertIn("the plugin keeps the contract", good.stdout)
        bad = check(os.path.join(PLUGINS, "broken.so"), ASSAY_BROKEN="wrong_gradients")
        self.assertEqual(bad.returncode, 1)
        self.assertIn("FAIL gradients: the gradient of", bad.stdout)
        unusable = check(os.path.join(PLUGINS, "broken.so"), ASSAY_BROKEN="interface")
        self.assertEqual(unusable.returncode, 2)
        self.assertIn("built for plugin interface 999", unusable.stderr)
        self.assertEqual(check("/nowhere/acme.so").returncode, 2)

    def test_trains_with_a_plugin(self):
        losses = {}
        for plugin in [None, "reference"]:
            with tempfile.TemporaryDirectory() as folder:
                sets = {"Engine.max_steps": 6, "Engine.logging_freq": 1, "Data.Eval": None,
                        "Data.Train.dataset.limit": 1000}
                if plugin:
                    sets.update({"Global.plugin": plugin, "Global.device": "reference"})
                config = self.write_config(folder, worker_support.case("simplenet", **sets))
                self.run_worker("train", config, folder)
                losses[plugin] = [float(loss) for loss in self.losses(folder).values()]
                records = self.records(folder)
                events = [r["name"] for r in records if r.get("name") in
                          ("CONVERT_MODEL", "CREATE_OPTIMIZER", "MODEL_TO_FP16", "MODEL_TO_DDP")]
                self.assertEqual(events, ["CONVERT_MODEL", "CREATE_OPTIMIZER", "MODEL_TO_DDP"])
                result = [r["data"] for r in records if r["type"] == "result"][0]
                self.assertEqual(result["mfu"] is None, plugin is not None)  # nobody knows the reference's peak
                named = [r["data"]["plugin"] for r in records if "plugin" in r.get("data", {})]
                self.assertEqual([p["name"] for p in named], [plugin] if plugin else [])
        self.assertEqual(len(losses[None]), 6)
        for plain, fused in zip(losses["reference"], losses[None]):
            self.assertAlmostEqual(plain, fused, places=4)

    def test_names_the_key_of_what_it_rejects(self):
        for sets, says in [({"Global.device": "acme1"}, "Global.device is not a known device; available: cpu."),
                           ({"Global.plugin": "referense"}, "did you mean 'reference'"),
                           ({"Global.plugin": "lib/absent.so"}, "there is no such file")]:
            with tempfile.TemporaryDirectory() as folder:
                config = self.write_config(folder, worker_support.case("simplenet", **sets))
                _, err = self.run_worker("train", config, folder, code=2)
                self.assertIn(says, err)

    def test_trains_with_the_vendor_of_the_documents(self):
        """vendors/acme of docs/extend/add-a-vendor.md, with its plugin beside it."""
        with tempfile.TemporaryDirectory() as home:
            for folder in ["cases"]:
                os.symlink(os.path.join(worker_support.SOURCE, folder), os.path.join(home, folder))
            os.symlink(os.path.join(os.environ["ASSAY_DOC_VENDOR"], "vendors"), os.path.join(home, "vendors"))
            config = worker_support.case("simplenet:libtorch:acme1:1:1:1", home=home)
            self.assertEqual(config["config"]["Global"]["plugin"], "acme")
            config["config"]["Global"]["plugin"] = os.path.join(PLUGINS, "acme.so")  # not installed beside the worker
            config["config"]["Engine"]["max_steps"] = 2
            self.run_worker("train", self.write_config(home, config), os.path.join(home, "out"))


if __name__ == "__main__":
    unittest.main()
