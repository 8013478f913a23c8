"""The case deepfm through assay-worker, on ratings of which half can be known: a training that learns, goes on bit for bit after
a kill, and is exported."""
import os
import shutil
import tempfile
import time
import unittest

from parallel_data import FILMS, USERS, write_ratings
from worker_support import WorkerTest, case
import tensor_file


class DeepFm(WorkerTest):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="assay-deepfm-")
        self.addCleanup(shutil.rmtree, self.folder)
        write_ratings(os.path.join(self.folder, "train.csv"), 4000, 1, noise=0.1)
        write_ratings(os.path.join(self.folder, "test.csv"), 500, 2, noise=0.1)
        places = {f"Data.{part}.dataset.input_dir": self.folder for part in ("Train", "Eval", "Test")}
        self.sets = {**places, "Model.fields": [USERS, FILMS], "Global.local_batch_size": 64, "Engine.num_train_epochs": 12,
                     "Optimizer.lr.learning_rate": 0.02, "Engine.logging_freq": 5, "Engine.save_load.save_steps": 20}

    def config(self, name, **more):
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        return self.write_config(folder, case("deepfm", **{**self.sets, **more})), folder

    def test_learns_resumes_and_exports(self):
        config, whole = self.config("whole")
        self.run_worker("train", config, whole)
        result = self.result(whole)
        self.assertGreater(result["final_accuracy"], 0.85)
        self.assertEqual(result["target"]["metric"], "auc")

        killed = os.path.join(self.folder, "killed")
        process = self.start("train", config, killed)
        for line in process.stdout:
            if "batch: [30/" in line:
                break
        saved = lambda: [name for name in os.listdir(os.path.join(killed, "checkpoints")) if not name.startswith(".")]
        while process.poll() is None and not (os.path.isdir(os.path.join(killed, "checkpoints")) and saved()):
            time.sleep(0.01)  # a checkpoint is written in the background
        process.kill()
        process.communicate()
        self.run_worker("train", config, killed)
        self.assertTrue([r for r in self.records(killed) if r.get("name") == "RESUMED"])
        self.assertEqual(self.losses(killed), self.losses(whole))
        self.assertEqual(self.result(killed)["hashes"]["weights"], result["hashes"]["weights"])
        self.assertEqual(self.result(killed)["final_accuracy"], result["final_accuracy"])

        evaluated, exported, inferred = (os.path.join(self.folder, name) for name in ("evaluated", "exported", "inferred"))
        weights = ("--weights", os.path.join(whole, "model.safetensors"))
        self.run_worker("evaluate", config, evaluated, *weights)
        self.assertEqual(self.result(evaluated)["final_accuracy"], result["final_accuracy"])
        self.run_worker("export", config, exported, *weights)
        out, _ = self.run_worker("infer", config, inferred, "--model", os.path.join(exported, "model.pt"))
        self.assertIn("[infer] auc: ", out)
        self.assertAlmostEqual(self.result(inferred)["final_accuracy"], result["final_accuracy"], places=4)
        ours, theirs = (tensor_file.load(os.path.join(f, "predictions.safetensors")) for f in (evaluated, inferred))
        self.assertLess((ours["logits"] - theirs["logits"]).abs().max().item(), 1e-4)
        self.assertEqual(ours["logits"].shape, (500,))

    def test_rejects_ids_beyond_the_model(self):
        config, folder = self.config("small", **{"Model.fields": [USERS, FILMS - 1]})
        _, err = self.run_worker("train", config, folder, code=10)
        self.assertIn("train.csv:", err)
        self.assertIn(f"item {FILMS - 1}, but there are {FILMS - 1}", err)

    def test_gives_no_area_for_labels_of_one_kind(self):
        config, folder = self.config("liked", **{"Data.Eval.dataset.liked_from": 0, "Engine.max_steps": 3})
        self.run_worker("train", config, folder)
        self.assertEqual(self.result(folder)["final_accuracy"], "NaN")
        self.assertFalse(self.result(folder)["converged"])


if __name__ == "__main__":
    unittest.main()
