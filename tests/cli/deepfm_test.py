"""The case deepfm through assay-worker, on ratings of which half can be known: a training that learns, goes on bit for bit after
a kill, and is exported."""
import os
import random
import shutil
import tempfile
import time
import unittest

from worker_support import WorkerTest, case
import tensor_file

USERS, FILMS = 30, 40


def write_ratings(path, count, seed):
    """Films with an even number are liked by users with an even number, and so on; one rating in ten is otherwise."""
    choose = random.Random(seed)
    with open(path, "w") as file:
        file.write("user,item,rating\n")
        for _ in range(count):
            user, item = choose.randrange(USERS), choose.randrange(FILMS)
            liked = (user + item) % 2 == 0
            if choose.random() < 0.1:
                liked = not liked
            file.write(f"{user},{item},{4.5 if liked else 2.0}\n")


class DeepFm(WorkerTest):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="assay-deepfm-")
        self.addCleanup(shutil.rmtree, self.folder)
        write_ratings(os.path.join(self.folder, "train.csv"), 4000, 1)
        write_ratings(os.path.join(self.folder, "test.csv"), 500, 2)
        places = {f"Data.{part}.dataset.input_dir": self.folder for part in ("Train", "Eval", "Test")}
        self.sets = {**places, "Model.fields": [USERS, FILMS], "Global.local_batch_size": 64, "Engine.num_train_epochs": 12,
                     "Optimizer.lr.learning_rate": 0.02, "Engine.logging_freq": 5, "Engine.save_load.save_steps": 20}

    def config(self, name, **more):
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        return self.write_config(folder, case("deepfm", **{**self.sets, **more})), folder

    def test_it_learns_resumes_and_is_exported(self):
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
        time.sleep(0.05)
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

    def test_ids_that_the_model_has_no_place_for(self):
        config, folder = self.config("small", **{"Model.fields": [USERS, FILMS - 1]})
        _, err = self.run_worker("train", config, folder, code=10)
        self.assertIn("train.csv:", err)
        self.assertIn(f"item {FILMS - 1}, but there are {FILMS - 1}", err)

    def test_labels_of_one_kind_give_no_area(self):
        config, folder = self.config("liked", **{"Data.Eval.dataset.liked_from": 0, "Engine.max_steps": 3})
        self.run_worker("train", config, folder)
        self.assertEqual(self.result(folder)["final_accuracy"], "NaN")
        self.assertFalse(self.result(folder)["converged"])


if __name__ == "__main__":
    unittest.main()
