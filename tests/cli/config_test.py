"""assay config: effective values with their origin, and one clear message with exit code 2 for every fault."""
import json
import unittest

import support

KEY = "tiny:libtorch:chip:1:1:1"


class ConfigTest(support.CliTest):
    def setUp(self):
        super().setUp()
        self.write("cases/tiny/case.yaml", support.TINY_CASE)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def vendor(self, text):
        self.write("vendors/acme/tiny/config_chipx1x1.yaml", text)

    def config(self, *arguments, expect=0):
        return self.assay("--home", self.folder, "config", *arguments, expect=expect)

    def refused(self, *arguments, code=2):
        """Nothing on standard output, one message on standard error."""
        done = self.config(*arguments, expect=code)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        return done.stderr

    def test_keeps_the_target_from_vendors_in_the_closed_division(self):
        self.vendor("target:\n  value: 0.1\n")
        message = self.refused(KEY)
        self.assertIn("config_chipx1x1.yaml:2: target.value", message)
        self.assertIn("closed division", message)
        done = json.loads(self.config(KEY, "--division", "open", "--json").stdout)
        self.assertEqual(done["division"], "open")
        self.assertEqual([(c["key"], c["before"], c["after"], c["mutable"]) for c in done["overrides"]],
                         [("target.value", 0.9, 0.1, False)])

    def test_keeps_the_learning_rate_from_vendors(self):
        self.vendor("lr: 0.5\n")
        self.assertIn("Optimizer.lr.learning_rate", self.refused(KEY))

    def test_lets_vendors_change_what_is_mutable(self):
        self.vendor("train_batch_size: 64\n")
        out = self.config(KEY).stdout
        self.assertRegex(out, r"Global\.local_batch_size +64 +vendors/acme/tiny/config_chipx1x1\.yaml:1\n")
        self.assertRegex(out, r"Global\.global_batch_size +64 +derived: ")
        self.assertIn("closed division  vendor acme", out)

    def test_sets_lists_nulls_maps_and_text(self):
        done = self.config("tiny", "--json", "--set", "Model.blocks.1=7", "--set", "Engine.max_steps=null", "--set",
                           "Optimizer.grad_clip={clip_norm: 2}", "--set", "Engine.eval_freq=-1", "--set",
                           "Data.Train.dataset.input_dir='1'", "--set", "Profiler.scheduler=[2, 4]")
        values = {row["key"]: row for row in json.loads(done.stdout)["values"]}
        self.assertEqual(values["Model.blocks"]["value"], [1, 7, 3])
        self.assertEqual(values["Model.blocks"]["place"], "--set Model.blocks.1=7")
        self.assertIsNone(values["Engine.max_steps"]["value"])
        self.assertIsNone(values["Engine.eval_freq"]["value"])
        self.assertEqual(values["Optimizer.grad_clip.clip_norm"]["value"], 2.0)
        self.assertEqual(values["Data.Train.dataset.input_dir"]["value"], "1")
        self.assertEqual(values["Profiler.scheduler"]["value"], [2, 4])
        self.assertEqual(values["Model.name"]["place"], "cases/tiny/case.yaml:6")
        self.assertEqual(values["Engine.run_mode"]["layer"], "default")

    def test_applies_the_plan_as_a_layer(self):
        self.write("plan.yaml", "Global: {local_batch_size: 8}\n")
        self.assertRegex(self.config("tiny", "--plan", "plan.yaml").stdout, r"local_batch_size +8 +plan\.yaml:1")
        self.write("plan.yaml", "Global: {seed: 8}\n")
        self.assertIn("plan.yaml:1: Global.seed", self.refused("tiny", "--plan", "plan.yaml"))
        self.assertIn("none.yaml", self.refused("tiny", "--plan", "none.yaml"))

    def test_exits_with_2_and_one_message(self):
        self.assertIn("did you mean 'Engine.max_steps'", self.refused("tiny", "--set", "Engine.max_stepz=1"))
        self.assertIn("must be an integer, found 'ten'", self.refused("tiny", "--set", "Engine.max_steps=ten"))
        self.assertIn("did you mean 'tiny'", self.refused("tyni"))
        self.assertIn("has 2 parts", self.refused("tiny:libtorch"))
        self.assertIn("key=value", self.refused("tiny", "--set", "Engine.max_steps"))
        self.assertIn("closed or open", self.refused("tiny", "--division", "half"))
        self.assertIn("which case", self.refused())
        self.assertIn("config_chipx1x1.yaml", self.refused(KEY))

    def test_survives_hostile_files(self):
        for text in [b"\xff\xfe\x00", b"a: " + b"[" * 100000, b"- list\n", b"a: 1\na: 2\n", b"a:\n\t- b\n", b"\x00" * 50,
                     b"model: tiny\nmodel: tiny\n", b"a: &a [*a]\n", b"", b"x" * (2 << 20)]:
            self.write("cases/tiny/case.yaml", text)
            self.assertIn("case.yaml", self.refused("tiny"), text[:20])
        path = self.folder / "cases/tiny/case.yaml"
        path.unlink()
        path.mkdir()
        self.assertIn("case.yaml", self.refused("tiny"))

    def test_prints_the_schema(self):
        out = self.config("--schema").stdout
        self.assertRegex(out, r"Engine\.max_steps +integer or null +null +")
        keys = {row["key"]: row for row in json.loads(self.config("--schema", "--json").stdout)}
        self.assertEqual(keys["Optimizer.lr.learning_rate"]["required"], True)
        self.assertEqual(keys["Global.seed"]["default"], 1024)

    def test_writes_what_the_worker_reads(self):
        read = json.loads(self.assay("config", "resnet:libtorch:cpu:1:1:1", "--worker", "--set", "Engine.max_steps=7").stdout)
        self.assertEqual((read["case"], read["key"]), ("resnet", "resnet:libtorch:cpu:1:1:1"))
        self.assertEqual(read["config"]["Engine"]["max_steps"], 7)

    def test_resolves_the_cases_of_the_project(self):
        for name in ("resnet", "simplenet"):
            for key in (name, f"{name}:libtorch:cpu:1:1:1"):
                done = json.loads(self.assay("config", key, "--json").stdout)
                self.assertEqual(done["division"], "closed", key)
                self.assertEqual(done["overrides"], [], key)


if __name__ == "__main__":
    unittest.main()
