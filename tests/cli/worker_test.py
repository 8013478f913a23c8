"""assay-worker as its parent sees it: files, records, exit codes."""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import tempfile
import time

from support import DEADLINE_S, SLOWER
from worker_support import FASHION, SOURCE, WORKER, WorkerTest, case, write_idx
import subprocess
import tensor_file
import unittest

SHORT = {"Engine.max_steps": 12, "Engine.logging_freq": 1, "Engine.eval_freq": None, "Global.local_batch_size": 32,
         "Data.Eval.dataset.limit": 200, "Data.Test.dataset.limit": 300,
         "Data.Test.loader.batch_size": 100, "Data.Train.dataset.limit": 2000}


class Chain(WorkerTest):
    """train -> evaluate -> export -> infer, on a few samples."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="assay-worker-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.config = self.write_config(self.folder, case("resnet", **SHORT))

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_trains_evaluates_exports_and_infers(self):
        out, _ = self.run_worker("train", self.config, self.path("train"))
        lines = [line for line in out.splitlines() if line.startswith("[train]")]
        self.assertEqual(len(lines), 12)
        self.assertRegex(lines[0], r"^\[train\] epoch: \[0/\d+\], batch: \[1/62\], loss: \d+\.\d{9}, avg_batch_cost: "
                                   r"\d+\.\d{5} sec, speed: \d+\.\d\d step/s, ips_total: \d+ images/s, ips: \d+ "
                                   r"images/s, loss_scale: 1\.000000000, learning rate: \d\.\d{5}e-\d\d, found_inf: 0$")
        result = self.result(self.path("train"))
        for key in ("e2e_time", "init_time", "raw_train_time", "no_eval_time", "pure_compute_time", "p_whole", "p_train",
                    "p_core", "final_accuracy", "peak_memory_bytes"):
            self.assertGreater(result[key], 0, key)
        self.assertGreaterEqual(result["e2e_time"], result["init_time"] + result["raw_train_time"])
        self.assertGreater(result["raw_train_time"], result["no_eval_time"])
        self.assertGreater(result["no_eval_time"], result["pure_compute_time"])
        self.assertEqual((result["steps"], result["num_samples"], result["unit"]), (12, 384, "images/s"))
        # Against the measured peak of the processor, by a loop that a build with sanitizers does not optimise.
        self.assertTrue(0 < result["mfu"] < SLOWER, result["mfu"])
        self.assertIsNone(result["energy_joules"])
        self.assertFalse(result["converged"])
        events = [r["name"] for r in self.records(self.path("train")) if r["type"] == "event"]
        self.assertEqual([event for event in events if event != "CHECKPOINT"],  # written in the background
                         ["INIT_START", "CONVERT_MODEL", "CREATE_OPTIMIZER", "MODEL_TO_DDP", "SUBMIT_INFO", "INIT_END",
                          "LAUNCH_TRAINING", "TRAIN_START", "EPOCH_BEGIN", "INIT_EVALUATION", "EVALUATE", "TRAIN_END",
                          "FINISHED"])
        self.assertRegex(out, r"(?m)^\[finished\] steps: 12, seconds: \d+\.\d$")  # of an observer of the engine
        types = {r["type"] for r in self.records(self.path("train"))}
        self.assertEqual(types, {"event", "metadata", "metrics", "environment", "parameters", "result"})

        weights = self.path("train/model.safetensors")
        self.run_worker("evaluate", self.config, self.path("evaluate"), "--weights", weights)
        evaluated = self.result(self.path("evaluate"))
        self.run_worker("export", self.config, self.path("export"), "--weights", weights)
        with open(self.path("export/export.json")) as file:
            export = json.load(file)
        self.assertEqual(export["inputs"], [{"name": "image", "dtype": "float32", "shape": [-1, 1, 28, 28]}])
        os.rename(weights, weights + ".away")  # the export must be enough
        self.run_worker("infer", self.config, self.path("infer"), "--model", self.path("export/model.pt"))
        inferred = self.result(self.path("infer"))
        self.assertEqual(inferred["final_accuracy"], evaluated["final_accuracy"])
        self.check_lineage(export["weights_hash"], result, evaluated, inferred)
        self.assertLessEqual(inferred["latency_ms"]["p50"], inferred["latency_ms"]["p99"])

        trained = tensor_file.load(self.path("evaluate/predictions.safetensors"))
        exported = tensor_file.load(self.path("infer/predictions.safetensors"))
        self.assertEqual(tuple(trained["logits"].shape), (300, 10))
        self.assertTrue(trained["labels"].equal(exported["labels"]))
        self.assertLess((trained["logits"] - exported["logits"]).abs().max().item(), 1e-4)
        accuracy = (trained["logits"].argmax(1) == trained["labels"]).double().mean().item()
        self.assertAlmostEqual(accuracy, evaluated["final_accuracy"], places=12)

    def check_lineage(self, weights, *results):
        """One hash of the weights, wherever they or what they made are."""
        self.assertEqual({result["hashes"]["weights"] for result in results}, {weights})
        for name in ("train/model.safetensors.away", "evaluate/predictions.safetensors",
                     "infer/predictions.safetensors"):
            self.assertEqual(tensor_file.metadata(self.path(name))["weights_hash"], weights, name)
        last = [r["data"] for r in self.records(self.path("train")) if r.get("name") == "CHECKPOINT"][-1]
        self.assertEqual((last["global_step"], last["weights_hash"]), (12, weights))
        with open(os.path.join(last["checkpoint"], "meta.json")) as file:
            self.assertEqual(json.load(file)["weights_hash"], weights)
        self.assertEqual(tensor_file.metadata(os.path.join(last["checkpoint"], "model.safetensors"))["weights_hash"],
                         weights)
        with open(os.path.join(last["checkpoint"], "config.json")) as kept, open(self.config) as given:
            self.assertEqual(json.load(kept), json.load(given))
        exported = [r["data"] for r in self.records(self.path("export")) if r.get("name") == "FINISHED"][0]
        self.assertEqual(exported["weights_hash"], weights)

    def test_starts_from_pretrained_weights_and_nothing_else(self):
        self.run_worker("train", self.config, self.path("first"))
        hash_of = lambda name: self.result(self.path(name))["hashes"]["weights"]
        checkpoint, = os.listdir(self.path("first/checkpoints"))
        for number, source in enumerate(("first/model.safetensors", "first/checkpoints/" + checkpoint)):
            name = f"next{number}"
            os.mkdir(self.path(name))
            config = self.write_config(self.path(name), case("resnet", **{
                **SHORT, "Engine.save_load.pretrained": self.path(source)}))
            out, _ = self.run_worker("train", config, self.path(name))
            self.assertIn("[pretrained]", out)
            self.assertIn("epoch: [0/", out)
            hashes = [r["data"]["weights_hash"] for r in self.records(self.path(name)) if r.get("name") == "PRETRAINED"]
            self.assertEqual(hashes, [hash_of("first")])
            self.assertEqual(self.result(self.path(name))["steps"], 12)
            self.assertNotEqual(hash_of(name), hash_of("first"))
        self.assertEqual(hash_of("next0"), hash_of("next1"))

    def test_writes_a_profile(self):
        config = self.write_config(self.folder, case("resnet", **{**SHORT, "Profiler.enable": True,
                                                                  "Profiler.scheduler": [3, 5]}))
        out, _ = self.run_worker("train", config, self.path("train"))
        with open(self.path("train/profile/trace.json")) as file:
            events = json.load(file)["traceEvents"]
        self.assertEqual({e["name"] for e in events if e["cat"] == "step"}, {"step 3", "step 4"})
        names = [e["name"] for e in events]
        self.assertEqual(names.count("aten::cross_entropy_loss") or names.count("aten::log_softmax"), 2)
        self.assertIn("aten::convolution", names)
        with open(self.path("train/profile/operators.txt")) as file:
            table = file.read().splitlines()
        self.assertRegex(table[0], r"^operator +calls +self ms +share$")
        shares = [float(line.split()[-2]) for line in table[1:]]
        self.assertEqual(shares, sorted(shares, reverse=True))
        self.assertAlmostEqual(sum(shares), 100, delta=0.05 * len(shares))
        self.assertIn(table[1].split()[0], out)

    def test_takes_the_records_path_from_the_environment(self):
        records = self.path("elsewhere/rank0.jsonl")
        self.run_worker("train", self.config, self.path("train"), env={"ASSAY_RECORDS": records})
        self.assertTrue(os.path.exists(records))
        self.assertFalse(os.path.exists(self.path("train/records.jsonl")))


class Determinism(WorkerTest):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="assay-worker-")
        self.addCleanup(shutil.rmtree, self.folder)

    def train(self, name, model="resnet", **sets):
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        config = self.write_config(folder, case(model, **{**SHORT, **sets}))
        self.run_worker("train", config, folder)
        return self.losses(folder), self.result(folder)["hashes"]["weights"]

    def test_repeats_losses_with_any_number_of_loader_threads(self):
        for model in ("resnet", "simplenet"):
            first = self.train(model + "1", model)
            self.assertEqual(len(first[0]), 12)
            self.assertEqual(self.train(model + "2", model), first)
            self.assertEqual(self.train(model + "3", model, **{"Data.Train.loader.num_workers": 4}), first)
        self.assertEqual(self.train("none", model, **{"Data.Train.loader.num_workers": 0}), first)
        self.assertNotEqual(self.train("seed", model, **{"Global.seed": 2}), first)


class Interruption(WorkerTest):
    """A killed or stopped training, started again in the same folder, ends as if nothing had happened."""

    @classmethod
    def setUpClass(cls):
        """One undisturbed training that every test compares with and none changes."""
        cls.folder = tempfile.mkdtemp(prefix="assay-worker-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.config = cls.write_config(cls.folder, case("resnet", **{
            **SHORT, "Engine.max_steps": 90, "Engine.save_load.save_steps": 7, "Engine.logging_freq": 2}))
        cls.whole = os.path.join(cls.folder, "whole")
        subprocess.run([WORKER, "train", "--config", cls.config, "--output", cls.whole], check=True, capture_output=True)

    def wait_for_step(self, process, step):
        for line in process.stdout:
            if line.startswith("[train]"):
                step -= 2
                if step <= 0:
                    return

    def check_same(self, folder):
        self.run_worker("train", self.config, folder)
        self.assertEqual(self.result(folder)["hashes"]["weights"], self.result(self.whole)["hashes"]["weights"])
        self.assertEqual(self.losses(folder), self.losses(self.whole))
        self.assertEqual(self.result(folder)["final_accuracy"], self.result(self.whole)["final_accuracy"])
        self.assertEqual(self.result(folder)["num_samples"], self.result(self.whole)["num_samples"])

    def test_resumes_after_kills(self):
        folder = os.path.join(self.folder, "killed")
        choose = random.Random(4)
        for _ in range(3):
            process = self.start("train", self.config, folder)
            self.wait_for_step(process, choose.randint(3, 25))
            time.sleep(choose.random() * 0.1)  # any moment between two steps
            process.kill()
            process.communicate()
        self.check_same(folder)
        resumed = [r["data"]["global_step"] for r in self.records(folder) if r.get("name") == "RESUMED"]
        self.assertTrue(resumed)
        self.assertTrue(all(step > 0 for step in resumed))

    def test_saves_at_sigterm_and_resumes(self):
        for attempt in range(5):  # on a busy machine the signal may come behind the last step
            folder = os.path.join(self.folder, f"stopped{attempt}")
            process = self.start("train", self.config, folder)
            self.wait_for_step(process, 11)
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=DEADLINE_S)
            if process.returncode != 0:
                break
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("the same command continues", err)
        saved = re.search(r"saved (\S+):", err).group(1)
        self.assertTrue(os.path.exists(os.path.join(saved, "meta.json")), "the process waited for its checkpoint")
        self.assertFalse([n for n in os.listdir(os.path.join(folder, "checkpoints")) if n.startswith(".")])
        self.assertEqual(self.records(folder)[-1]["data"]["kind"], "interrupted")
        self.check_same(folder)

    def test_names_and_skips_damaged_checkpoints(self):
        folder = os.path.join(self.folder, "damaged")
        shutil.copytree(self.whole, folder)
        os.remove(os.path.join(folder, "records.jsonl"))
        newest = max(os.listdir(os.path.join(folder, "checkpoints")), key=lambda name: int(name.split("_")[3]))
        path = os.path.join(folder, "checkpoints", newest, "model.safetensors")
        with open(path, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"\xff")
        out, _ = self.run_worker("train", self.config, folder)
        self.assertRegex(out, rf"\[resume\] damaged, passed over: \S+/{newest}: .*model.safetensors")
        self.assertRegex(out, r"\[resume\] epoch: \d+, step: 84, checkpoint: \S+_step_84, weights: [0-9a-f]{12}\n")
        records = self.records(folder)
        damaged = [r["data"] for r in records if r.get("name") == "DAMAGED_CHECKPOINT"]
        self.assertEqual(len(damaged), 1)
        self.assertIn(newest, damaged[0]["reason"])
        self.assertEqual([r["data"]["global_step"] for r in records if r.get("name") == "RESUMED"], [84])
        self.assertEqual(self.result(folder)["hashes"]["weights"], self.result(self.whole)["hashes"]["weights"])

    def test_does_not_repeat_a_finished_training(self):
        folder = os.path.join(self.folder, "again")
        shutil.copytree(self.whole, folder)
        out, _ = self.run_worker("train", self.config, folder)
        self.assertNotIn("[train]", out)
        self.assertEqual(self.result(folder)["final_accuracy"], self.result(self.whole)["final_accuracy"])

    def test_rejects_another_configuration_in_the_same_folder(self):
        folder = os.path.join(self.folder, "other")
        shutil.copytree(self.whole, folder)
        for key, value in (("Optimizer.lr.learning_rate", 0.01), ("Optimizer.name", "AdamW")):
            other = case("resnet", **{**SHORT, key: value})
            out, err = self.run_worker("train", self.write_config(folder, other), folder, code=2)
            self.assertIn("another configuration", err)
            self.assertNotIn("damaged", out)


class Failures(WorkerTest):
    """Each failure has its exit code, one message on standard error, and a FAILURE record."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="assay-worker-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.output = os.path.join(self.folder, "out")

    def fails(self, code, kind, config, *texts, command="train", arguments=(), env=None):
        shutil.rmtree(self.output, ignore_errors=True)
        path = config if isinstance(config, str) else self.write_config(self.folder, config)
        _, err = self.run_worker(command, path, self.output, *arguments, env=env, code=code)
        self.assertEqual(len(err.strip().splitlines()), 1, err)
        for text in texts:
            self.assertIn(text, err)
        record = self.records(self.output)[-1]
        self.assertEqual((record["name"], record["data"]["kind"]), ("FAILURE", kind))
        self.assertFalse(os.path.exists(os.path.join(self.output, "model.safetensors")))
        return err

    def test_rejects_wrong_configurations(self):
        config = case("resnet", **SHORT)
        config["config"]["Model"]["widht"] = 3
        self.fails(2, "config", config, "Model.widht", "width")
        config = case("resnet", **SHORT)
        config["config"]["Engine"]["max_steps"] = "ten"
        self.fails(2, "config", config, "Engine.max_steps", "ten")
        self.fails(2, "config", case("resnet", **SHORT), "WORLD_SIZE=2", env={"WORLD_SIZE": "2"})
        self.fails(2, "config", case("resnet", **SHORT), "ASSAY_THREADS", env={"ASSAY_THREADS": "many"})

    def test_rejects_unreadable_configuration_files(self):
        path = os.path.join(self.folder, "broken.json")
        self.fails(10, "data", path, path)
        for text in ("", "{", "[]", "7", '{"case": "resnet"}'):
            with open(path, "w") as file:
                file.write(text)
            shutil.rmtree(self.output, ignore_errors=True)
            process = self.start("train", path, self.output)
            _, err = process.communicate(timeout=DEADLINE_S)
            self.assertIn(process.returncode, (2, 10), err)
            self.assertIn(path, err)

    def data_folder(self):
        folder = os.path.join(self.folder, "data")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(FASHION, folder)
        return folder

    def test_rejects_damaged_data(self):
        missing = case("resnet", **{**SHORT, "Data.Train.dataset.input_dir": "/no/such/folder"})
        self.fails(10, "data", missing, "/no/such/folder")
        folder = self.data_folder()
        config = case("resnet", **{**SHORT, "Data.Train.dataset.input_dir": folder})
        labels = os.path.join(folder, "train-labels-idx1-ubyte.gz")
        os.truncate(labels, os.path.getsize(labels) // 2)
        self.fails(10, "data", config, labels)
        config["division"] = "open"
        self.fails(10, "data", config, labels, "ends too early")
        write_idx(labels, [59999], bytes(59999))
        self.fails(10, "data", config, labels, "60000 images", "59999 labels")
        write_idx(labels, [60000], bytes(59999) + b"\x0a")
        self.fails(10, "data", config, labels, "label 10")
        os.remove(labels)
        self.fails(10, "data", config, labels, "no such file")

    def test_rejects_other_data_than_declared(self):
        folder = self.data_folder()
        write_idx(os.path.join(folder, "train-labels-idx1-ubyte.gz"), [60000], bytes(60000))
        config = case("resnet", **{**SHORT, "Data.Train.dataset.input_dir": folder})
        config["division"] = "closed"
        self.fails(10, "data", config, "SHA-256")

    def test_stops_at_a_loss_that_is_not_finite(self):
        config = case("simplenet", **{**SHORT, "Optimizer.name": "SGD", "Optimizer.lr.name": "constant",
                                      "Optimizer.lr.learning_rate": 1e9})
        err = self.fails(12, "non_finite", config, "step", "learning rate")
        self.assertRegex(err, r"at step [2-9]")

    def test_stops_at_a_loss_spike(self):  # without an activation nothing keeps a step that is too large in bounds
        config = case("simplenet-full", **{**SHORT, "Optimizer.name": "SGD", "Optimizer.lr.name": "constant",
                                           "Optimizer.lr.learning_rate": 1.0, "Engine.spike.enable": True,
                                           "Engine.spike.window": 1})
        self.fails(15, "loss_spike", config, "the loss jumped to", "at step", "batch", "Engine.spike.factor")

    def test_rejects_early_stop_without_evaluations(self):
        config = case("simplenet", **{**SHORT, "Data.Eval": None, "Engine.early_stop": 2})
        self.fails(2, "config", config, "Engine.early_stop", "Data.Eval")

    def test_reports_disk_trouble_of_a_checkpoint(self):
        config = case("simplenet", **{**SHORT, "Engine.save_load.save_steps": 2})
        os.mkdir(self.output)
        with open(os.path.join(self.output, "checkpoints"), "w"):
            pass
        _, err = self.run_worker("train", self.write_config(self.folder, config), self.output, code=4)
        self.assertEqual(len(err.strip().splitlines()), 1, err)
        self.assertIn("checkpoints", err)

    @unittest.skipIf(SLOWER > 1, "the address sanitizer does not start with a limited address space")
    def test_reports_out_of_memory(self):
        config = case("simplenet", **SHORT)
        config["config"]["Model"]["image_size"] = 16384  # five matrices of 1 GB, and their gradients
        path = self.write_config(self.folder, config)
        shutil.rmtree(self.output, ignore_errors=True)
        process = subprocess.run(["prlimit", "--as=2500000000", WORKER, "train", "--config", path, "--output",
                                  self.output], capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 11, process.stderr)
        self.assertEqual(len(process.stderr.strip().splitlines()), 1, process.stderr)
        self.assertIn("out of memory", process.stderr)
        self.assertEqual(self.records(self.output)[-1]["data"]["kind"], "out_of_memory")

    def test_rejects_files_that_are_not_weights(self):
        config = case("resnet", **SHORT)
        path = os.path.join(self.folder, "weights")
        with open(path, "wb") as file:
            file.write(b"\x00" * 100)
        for command, argument in (("evaluate", "--weights"), ("export", "--weights"), ("infer", "--model")):
            self.fails(10, "data", config, path, command=command, arguments=(argument, path))
            self.fails(10, "data", config, "absent", command=command, arguments=(argument, path + ".absent"))

    def test_rejects_weights_of_another_model(self):
        self.run_worker("train", self.write_config(self.folder, case("simplenet", **{**SHORT, "Engine.max_steps": 1})),
                        os.path.join(self.folder, "simplenet"))
        weights = os.path.join(self.folder, "simplenet/model.safetensors")
        self.fails(10, "data", case("resnet", **SHORT), weights, command="evaluate", arguments=("--weights", weights))

    def test_explains_wrong_usage(self):
        for arguments in ([], ["trian"], ["train"], ["train", "--config"], ["evaluate", "--config", "x", "--output", "y"]):
            process = subprocess.run([WORKER, *arguments], capture_output=True, text=True)
            self.assertEqual(process.returncode, 2, process.stderr)
        process = subprocess.run([WORKER, "--help"], capture_output=True, text=True)
        self.assertEqual(process.returncode, 0)


class Answers(unittest.TestCase):
    def test_answers_info_and_models(self):
        info = json.loads(subprocess.run([WORKER, "info", "--measure"], check=True, capture_output=True).stdout)
        self.assertTrue(info["blas"]["openblas"])
        self.assertGreater(info["blas"]["sgemm_gflops"], 0)
        self.assertGreater(info["cpu"]["fma_gflops"], 0)
        models = json.loads(subprocess.run([WORKER, "models"], check=True, capture_output=True).stdout)
        # Every folder that has an entry to register; gpt and bert are networks without a case so far.
        folders = sorted(path.parent.name for path in pathlib.Path(SOURCE, "src/worker/models").glob("*/model.cpp")
                         if "ModelEntry entry()" in path.read_text())
        self.assertEqual(sorted(model["name"] for model in models), folders)


if __name__ == "__main__":
    unittest.main()
