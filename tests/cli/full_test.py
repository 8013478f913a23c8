"""The published sizes really make a step here, and are evaluated: architecture and sequences as published, small batches and
little data. The largest ones are long; what needs more memory or minutes (gpt-345m and above, llama-1b) is not here."""
import json
import math
import unittest

from PIL import Image

import parallel_data
from detector_test import write_images
from support import CliTest, json_lines, long_test


def make_outlines(_, folder):
    for split in "train", "test":
        write_images(folder, split, 4)


def make_images(_, folder):
    for split in "train", "test":
        for label in "dark", "light":
            (folder / split / label).mkdir(parents=True)
            for number in range(3):
                grey = (60 if label == "dark" else 200) + number
                Image.new("RGB", (240, 230), (grey, 90, grey)).save(folder / split / label / f"{number}.jpg")


# Case -> how its data are made, samples per batch
FULL = {
    "gpt-full": (parallel_data.make_tokens, 1),
    "glm-full": (parallel_data.make_tokens, 1),
    "bert-full": (parallel_data.make_texts, 2),
    "deepfm-full": (parallel_data.make_ratings, 64),
    "ocr_det-full": (make_outlines, 2),
    "resnet-18": (make_images, 2),
    "resnet-50": (make_images, 2),
}


SHORT = ["deepfm-full", "ocr_det-full", "resnet-18"]


class Full(CliTest):
    def test_makes_a_step_of_the_smaller_sizes(self):
        self.check_step(SHORT)

    @long_test
    def test_makes_a_step_of_every_size(self):
        self.check_step(FULL)

    def check_step(self, names):
        parameters = {c["case"]: c["parameters"] for c in json.loads(self.assay("cases", "--json").stdout)}
        for name in names:
            make, batch = FULL[name]
            with self.subTest(name):
                data = self.folder / f"data-{name}"
                data.mkdir()
                make(self.assay, data)
                # No checkpoint: it would write all weights and the optimizer's state a second time.
                self.assay("train", name, "--step", 1, "--batch_size", batch, "-q", "--set", f"data.path={data}",
                           "--set", "Engine.eval_iters=1", "--set", f"Data.Eval.loader.batch_size={batch}",
                           "--set", "Engine.save_load.save_epoch=-1")
                run = self.runs()[-1]
                result = json.loads((run / "result.json").read_text())["results"][0]
                self.assertTrue(math.isfinite(result["final_accuracy"]), result)
                losses = [r["data"]["train.loss"] for r in json_lines(run / "steps/1-train/records.jsonl")
                          if "train.loss" in r.get("data", {})]
                self.assertEqual(len(losses), 1)
                self.assertTrue(math.isfinite(losses[0]) and losses[0] > 0, losses)
                weights = run / "steps/1-train/output/model.safetensors"
                self.assertGreaterEqual(weights.stat().st_size, 4 * parameters[name])
                weights.unlink()  # up to half a gigabyte


if __name__ == "__main__":
    unittest.main()
