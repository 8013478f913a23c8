"""assay train: the unified arguments, exit codes, determinism."""
import json
import os
import pathlib
import shutil
import signal
import time
import unittest

from support import DEADLINE_S, SLOWER, CliTest, json_lines, processes_with

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")


def losses(run):
    return [(r["data"]["global_step"], r["data"]["train.loss"]) for r in json_lines(run / "steps/1-train/records.jsonl")
            if "train.loss" in r.get("data", {})]


class Train(CliTest):
    def test_makes_exactly_the_steps_asked_for(self):
        done = self.assay("train", "resnet", "--step", "12", "--batch_size", "32", "--set", "Engine.logging_freq=1")
        for line in ["environment", "  MASTER_ADDR=127.0.0.1", "  NODE_RANK=0", "arguments", "  --step 12", "  --batch_size 32"]:
            self.assertIn(f"\n{line}\n", "\n" + done.stderr)
        found = losses(self.runs()[0])
        self.assertEqual([step for step, _ in found], list(range(1, 13)), "exactly 12 steps")

    def test_repeats_losses_with_any_number_of_loader_threads(self):
        runs = []
        for workers in ["0", "1", "4", "4"]:
            self.assay("train", "resnet", "--step", "15", "--num_workers", workers, "--set", "Engine.logging_freq=1", "-q")
            runs.append(losses(self.runs()[-1]))
        self.assertEqual(len(runs[0]), 15)
        for other in runs[1:]:
            self.assertEqual(other, runs[0], "bitwise the same")
        self.assay("train", "resnet", "--step", "15", "--set", "Engine.logging_freq=1", "--set", "Global.seed=5", "-q")
        self.assertNotEqual(losses(self.runs()[-1]), runs[0], "another seed is another run")

    def test_computes_otherwise_with_autocast(self):
        for autocast in ["no", "yes"]:
            self.assay("train", "simplenet", "--step", "5", "--autocast", autocast, "--set", "Engine.logging_freq=1", "-q")
        plain, mixed = (losses(run) for run in self.runs())
        self.assertNotEqual(plain, mixed)
        for (_, a), (_, b) in zip(plain, mixed):
            self.assertAlmostEqual(a, b, delta=0.05 * abs(a))

    def check_failure(self, code, *arguments, says):
        earlier = self.runs()
        done = self.assay("train", *arguments, expect=code)
        text = done.stdout + done.stderr
        for part in says:
            self.assertIn(part, text)
        run, = [run for run in self.runs() if run not in earlier]  # two may begin within one second
        status = json.loads((run / "steps/1-train/status.json").read_text())
        self.assertEqual((status["outcome"], status["exit_code"]), ("Error", code))
        failures = [r for r in json_lines(run / "steps/1-train/records.jsonl") if r.get("name") == "FAILURE"]
        self.assertEqual(len(failures), 1)

    def damaged_data(self, change):
        folder = self.folder / "data"
        shutil.copytree(DATA, folder)
        change(folder)
        return folder

    def test_exits_with_the_code_of_the_worker(self):
        self.check_failure(2, "resnet", "--step", "2", "--set", "Model.blocks=[0]", says=["Model.blocks"])
        self.check_failure(12, "simplenet", "--lr", "1e30", "--set", "Optimizer.name=SGD", "--set", "Optimizer.lr.name=constant", says=["step"])

        def truncate(folder):
            file = folder / "train-images-idx3-ubyte.gz"
            file.write_bytes(file.read_bytes()[:1000])
        folder = self.damaged_data(truncate)
        self.check_failure(10, "resnet", "--step", "2", "--dataset_path", folder, says=["train-images-idx3-ubyte.gz"])

    def test_reports_the_signal_of_a_killed_worker(self):
        process = self.start("train", "resnet")
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline and not list(self.folder.glob("runs/2*/steps/1-train/records.jsonl")):
            time.sleep(0.05)
        workers = [p for p in processes_with(self.runs()[0].name + "/train")]
        self.assertEqual(len(workers), 1)
        os.kill(workers[0], signal.SIGKILL)
        out, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 137)
        self.assertIn("killed by signal 9", out + err)

    def test_stops_at_the_time_limit(self):
        done = self.assay("train", "resnet", "--time-limit", "2", expect=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("time limit", done.stdout + done.stderr)


class Records(CliTest):
    def test_records_everything_of_a_training(self):
        self.assay("train", "simplenet", "--step", "20", "-q")
        shown = next(c for c in json.loads(self.assay("cases", "--json").stdout) if c["case"] == "simplenet")["last_result"]
        self.assertEqual((shown["outcome"], shown["metric"]), ("Pass", "accuracy"))
        self.assertEqual((shown["stored"], shown["current"]), (False, False), "of a run here, shorter than the case")
        self.assertEqual(shown["reached"], shown["value"] >= 0.86)
        # Twenty steps are not the case: its page keeps what it shows.
        self.assay("report", "last", "--to-case", expect=2)
        run = self.runs()[0]
        records = json_lines(run / "steps/1-train/records.jsonl")
        names = [r.get("name") for r in records]
        for event in ["INIT_START", "INIT_END", "TRAIN_START", "TRAIN_END", "EVALUATE", "FINISHED"]:
            self.assertIn(event, names)
        metrics = [r["data"] for r in records if "train.loss" in r.get("data", {})]
        for key in ["train.ips", "train.lr", "train.data_time", "train.fp_time", "train.bp_time", "train.grad_time",
                    "train.compute_time", "global_step"]:
            self.assertIn(key, metrics[-1])
        result = json.loads((run / "result.json").read_text())["results"][0]
        for key in ["e2e_time", "init_time", "raw_train_time", "no_eval_time", "pure_compute_time", "p_whole", "p_train",
                    "p_core", "peak_memory_bytes"]:
            self.assertGreater(result[key], 0, key)
        self.assertLess(result["pure_compute_time"], result["raw_train_time"] + 1e-6)
        self.assertLessEqual(result["raw_train_time"], result["e2e_time"])
        # Against the measured peak of the processor, by a loop that a build with sanitizers does not optimise.
        self.assertTrue(0 < result["mfu"] < SLOWER, result["mfu"])
        self.assertIsNone(result["energy_joules"])
        self.assertIs(result["converged"], False)
        self.assertEqual(result["steps"], 20)
        for key in ["case", "data", "code", "weights"]:
            self.assertTrue(result["hashes"][key], key)


if __name__ == "__main__":
    unittest.main(verbosity=2)
