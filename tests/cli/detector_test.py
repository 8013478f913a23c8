"""The detector of texts from training to its export, on a few images of bright bars: outputs are maps, not classes."""
import json
import os
import pathlib
import random
import shutil
import tempfile
import unittest

from PIL import Image

from worker_support import WorkerTest, case
import tensor_file

SIZE = 96
SHORT = {"Engine.num_train_epochs": 60, "Engine.eval_freq": None, "Engine.logging_freq": 8,
         "Data.Train.dataset.min_area": 1.0, "Global.local_batch_size": 8, "Model.image_size": SIZE,
         "Data.Eval.loader.batch_size": 4, "Data.Test.dataset.limit": 6, "Data.Test.loader.batch_size": 4}


def write_images(folder, split, count):
    """Grey images with one bright bar each, and labels in PP-OCR's format."""
    random.seed(split)
    lines = []
    for number in range(count):
        image = Image.new("RGB", (SIZE, SIZE), (60, 60, 60))
        width, height = random.randint(36, 60), random.randint(18, 26)
        left, top = random.randint(4, SIZE - width - 4), random.randint(4, SIZE - height - 4)
        right, bottom = left + width, top + height
        image.paste((220, 220, 220), (left, top, right, bottom))
        name = f"{split}-{number}.png"
        image.save(folder / name)
        points = [[left, top], [right, top], [right, bottom], [left, bottom]]
        lines.append(name + "\t" + json.dumps([{"transcription": "bar", "points": points}]))
    (folder / f"{split}.txt").write_text("\n".join(lines) + "\n")


class Detector(WorkerTest):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-detector-"))
        self.addCleanup(shutil.rmtree, self.folder)
        write_images(self.folder, "train", 64)
        write_images(self.folder, "test", 10)
        sets = dict(SHORT)
        for part in ("Train", "Eval", "Test"):
            sets[f"Data.{part}.dataset.height"] = sets[f"Data.{part}.dataset.width"] = SIZE
            sets[f"Data.{part}.dataset.input_dir"] = str(self.folder)
        config = case("ocr_det", **sets)
        config["division"] = "open"  # these are not the images of the case
        self.config = self.write_config(str(self.folder), config)

    def path(self, name):
        return str(self.folder / name)

    def test_finds_by_the_export_what_the_network_finds(self):
        self.run_worker("train", self.config, self.path("train"))
        trained = self.result(self.path("train"))
        self.assertEqual(trained["unit"], "images/s")
        self.assertGreater(trained["final_accuracy"], 0.7)
        weights = self.path("train/model.safetensors")
        self.run_worker("evaluate", self.config, self.path("evaluate"), "--weights", weights)
        evaluated = self.result(self.path("evaluate"))
        self.run_worker("export", self.config, self.path("export"), "--weights", weights)
        out, _ = self.run_worker("infer", self.config, self.path("infer"), "--model", self.path("export/model.pt"))
        self.assertRegex(out, r"\[infer\] hmean: [01]\.\d{4}, samples: 6, throughput: \d+ images/s")
        inferred = self.result(self.path("infer"))
        self.assertEqual(inferred["target"]["metric"], "hmean")
        self.assertEqual(inferred["final_accuracy"], evaluated["final_accuracy"])
        found = tensor_file.load(self.path("evaluate/predictions.safetensors"))["logits"]
        exported = tensor_file.load(self.path("infer/predictions.safetensors"))["logits"]
        self.assertEqual(tuple(found.shape), (6, 1, SIZE, SIZE))
        self.assertLess((found - exported).abs().max().item(), 1e-4)

    def test_resumes_to_the_same_training(self):
        whole, halves = self.path("whole"), self.path("halves")
        with open(self.config) as file:
            config = json.load(file)
        config["config"]["Engine"]["max_steps"] = 12
        config["config"]["Engine"].setdefault("save_load", {})["save_steps"] = 6
        path = self.write_config(str(self.folder), config)
        self.run_worker("train", path, whole)
        shutil.copytree(whole, halves)
        os.remove(os.path.join(halves, "model.safetensors"))
        checkpoints = sorted(os.listdir(os.path.join(halves, "checkpoints")))
        shutil.rmtree(os.path.join(halves, "checkpoints", checkpoints[-1]))  # as if it had been killed after step 6
        self.run_worker("train", path, halves)
        self.assertEqual(self.result(halves)["hashes"]["weights"], self.result(whole)["hashes"]["weights"])


if __name__ == "__main__":
    unittest.main()
