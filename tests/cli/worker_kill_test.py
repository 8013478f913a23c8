"""kill -9 at random moments of a training, also while a checkpoint is being written, and resume: the final
weights are bitwise those of a run that nobody disturbed."""
import os
import random
import shutil
import tempfile
import time
import unittest

from support import long_test
from worker_support import WorkerTest, case, write_idx

NUM_KILLS, NUM_KILLS_SHORT = 20, 6
NUM_STEPS = 300
SIDE = 16  # small images: little to compute, much to save


class KillWhileTraining(WorkerTest):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="assay-kill-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.random = random.Random(20)
        data = os.path.join(self.folder, "data")
        os.mkdir(data)
        for name, count in (("train", 640), ("t10k", 64)):
            write_idx(os.path.join(data, f"{name}-images-idx3-ubyte.gz"), [count, SIDE, SIDE],
                      self.random.randbytes(count * SIDE * SIDE))
            write_idx(os.path.join(data, f"{name}-labels-idx1-ubyte.gz"), [count],
                      bytes(self.random.randrange(10) for _ in range(count)))
        places = {f"Data.{part}.dataset.input_dir": data for part in ("Train", "Eval", "Test")}
        self.config = self.write_config(self.folder, case("simplenet", **{
            **places, "Model.image_size": SIDE * SIDE, "Global.local_batch_size": 32, "Engine.max_steps": NUM_STEPS,
            "Engine.num_train_epochs": 100, "Engine.logging_freq": 1, "Engine.run_mode": "step", "Engine.eval_freq": 50,
            "Engine.spike.enable": True, "Engine.spike.factor": 1000.0, "Engine.save_load.save_steps": 3,
            "Engine.save_load.keep_last": 2, "Engine.save_load.keep_best": 1}))

    def unfinished(self, folder):
        checkpoints = os.path.join(folder, "checkpoints")
        return os.path.isdir(checkpoints) and any(n.startswith(".unfinished-") for n in os.listdir(checkpoints))

    def attempt(self, folder, moment):
        """One start, killed so long after its first step; moment None: when a checkpoint is being written. Returns
        whether it was killed; it may have finished."""
        process = self.start("train", self.config, folder)
        for line in process.stdout:
            if line.startswith("[train]"):
                break
        if moment is None:
            while process.poll() is None and not self.unfinished(folder):
                pass
        else:
            time.sleep(moment)
        process.kill()
        process.communicate()
        self.assertIn(process.returncode, (0, -9))
        return process.returncode == -9

    def check_same(self, folder, whole):
        self.assertEqual(self.result(folder)["hashes"]["weights"], self.result(whole)["hashes"]["weights"])
        self.assertEqual(self.losses(folder), self.losses(whole))
        self.assertEqual(self.result(folder)["final_accuracy"], self.result(whole)["final_accuracy"])
        for name in ("checkpoints/best.json", "model.safetensors"):
            with open(os.path.join(folder, name), "rb") as ours, open(os.path.join(whole, name), "rb") as theirs:
                self.assertEqual(ours.read(), theirs.read(), name)
        self.assertEqual(sorted(os.listdir(os.path.join(folder, "checkpoints"))),
                         sorted(os.listdir(os.path.join(whole, "checkpoints"))))

    def test_survives_some_kills(self):
        self.check_kills(NUM_KILLS_SHORT)

    @long_test
    def test_survives_twenty_kills(self):
        self.check_kills(NUM_KILLS)

    def check_kills(self, wanted):
        whole = os.path.join(self.folder, "whole")
        self.run_worker("train", self.config, whole)
        self.assertEqual(len(self.losses(whole)), NUM_STEPS)
        training = self.result(whole)["raw_train_time"]
        folder = os.path.join(self.folder, "killed0")
        num_kills = num_while_writing = num_runs = 0
        wanted_while_writing = wanted // 3
        # A kill may come just behind the checkpoint that it was meant for; others follow then, but not for ever.
        while num_kills < wanted or (num_while_writing < wanted_while_writing and num_kills < 10 * wanted):
            moment = None if num_kills % 3 == 0 or num_kills >= wanted else self.random.random() * training / 10
            if self.attempt(folder, moment):
                num_kills += 1
                num_while_writing += self.unfinished(folder)
            else:  # finished before the kill: so much the better for this run; the next kills hit another
                self.check_same(folder, whole)
                num_runs += 1
                folder = os.path.join(self.folder, f"killed{num_runs}")
        self.run_worker("train", self.config, folder)
        self.check_same(folder, whole)
        resumed = [r["data"] for r in self.records(folder) if r.get("name") == "RESUMED"]
        self.assertTrue(resumed)
        self.assertTrue(all(len(data["weights_hash"]) == 64 for data in resumed))
        self.assertGreaterEqual(num_while_writing, wanted_while_writing, "kills that left a checkpoint half written")
        self.assertFalse([r for r in self.records(folder) if r.get("name") == "DAMAGED_CHECKPOINT"])


if __name__ == "__main__":
    unittest.main()
