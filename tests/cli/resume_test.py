"""The cases of texts, small: a training that is killed and started again ends with the weights of one that nobody disturbed."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import parallel_data
from support import ASSAY
from worker_support import WorkerTest, case

NUM_STEPS = 80
# Dropout stays, so that the random generator is part of what is continued.
TINY = {"Model.hidden_size": 32, "Model.num_layers": 2, "Model.num_attention_heads": 2, "Model.ffn_hidden_size": 64,
        "Global.local_batch_size": 4, "Engine.num_train_epochs": 1000, "Engine.max_steps": NUM_STEPS, "Engine.logging_freq": 1,
        "Engine.run_mode": "step", "Engine.eval_freq": 25, "Engine.save_load.save_steps": 5, "Engine.save_load.keep_last": 2}
LENGTHS = {"bert": {"max_seq_len": 48}, "glm": {"source_seq_len": 40, "max_seq_len": 56}, "llama": {"max_seq_len": 32}}


class Resume(WorkerTest):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-resume-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def assay(self, *arguments):
        subprocess.run([ASSAY, *map(str, arguments)], check=True, capture_output=True, cwd=self.folder)

    def config(self, name):
        folder = self.folder / name
        folder.mkdir()
        make, told = parallel_data.CASES[name]
        make(self.assay, folder)
        sets = {**TINY, "data.path": str(folder), "Model.max_position_embeddings": LENGTHS[name]["max_seq_len"]}
        sets |= {key: json.loads(value) for key, value in (setting.split("=", 1) for setting in told)}
        sets |= {f"Data.{part}.dataset.{key}": value for part in ("Train", "Eval", "Test") for key, value in LENGTHS[name].items()}
        return self.write_config(str(folder), case(name, **sets))

    def kill_after(self, config, output, lines):
        process = self.start("train", config, output)
        for line in process.stdout:
            lines -= line.startswith("[train]")
            if lines == 0:
                break
        process.kill()
        _, err = process.communicate()
        self.assertEqual(process.returncode, -9, err)

    def test_resumes_after_two_kills(self):
        for name in LENGTHS:
            with self.subTest(name):
                config = self.config(name)
                whole, killed = (str(self.folder / f"{name}-{which}") for which in ("whole", "killed"))
                self.run_worker("train", config, whole)
                self.assertEqual(len(self.losses(whole)), NUM_STEPS)
                self.kill_after(config, killed, 12)
                self.kill_after(config, killed, 15)
                self.run_worker("train", config, killed)
                resumed = [r["data"]["global_step"] for r in self.records(killed) if r.get("name") == "RESUMED"]
                self.assertTrue(resumed and all(0 < step < NUM_STEPS for step in resumed), resumed)
                self.assertEqual(self.losses(killed), self.losses(whole))
                for key in "final_accuracy", "num_samples":
                    self.assertEqual(self.result(killed)[key], self.result(whole)[key], key)
                self.assertEqual(self.result(killed)["hashes"]["weights"], self.result(whole)["hashes"]["weights"])
                with open(os.path.join(whole, "model.safetensors"), "rb") as ours, \
                        open(os.path.join(killed, "model.safetensors"), "rb") as theirs:
                    self.assertEqual(ours.read(), theirs.read())


if __name__ == "__main__":
    unittest.main()
