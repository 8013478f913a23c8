"""Parameter servers through assay-worker, with the environment of Paddle's launcher: the case deepfm against one process, and
servers and trainers that are killed."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import parallel_data
from parallel_data import FILMS, USERS, write_ratings
from support import DEADLINE_S, CliTest, json_lines, long_test, processes_with
from worker_support import WORKER, WorkerTest, case, mixed
import tensor_file

STEPS = 20


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Job:
    """Servers and trainers as Paddle's launcher starts them: the same command with another environment."""

    def __init__(self, test, config, output, servers, trainers):
        self.test, self.config, self.output, self.trainers = test, config, output, trainers
        self.ports = free_ports(servers)
        self.processes, self.logs = {}, {}
        for i in range(servers):
            self.start_server(i)
        for i in range(trainers):
            self.start_trainer(i)

    def start_one(self, name, command, **env):
        shared = {"PADDLE_PSERVERS_IP_PORT_LIST": ",".join(f"127.0.0.1:{port}" for port in self.ports),
                  "PADDLE_TRAINERS_NUM": str(self.trainers), "ASSAY_THREADS": "1"}
        # Into files: nobody reads pipes while the processes run.
        self.logs[name] = os.path.join(self.test.folder, f"{time.monotonic_ns()}.log")
        with open(self.logs[name], "w") as log:
            process = subprocess.Popen([WORKER, command, "--config", self.config, "--output", self.output], stdout=log,
                                       stderr=subprocess.STDOUT, env={**os.environ, **shared, **env})
        self.test.addCleanup(self.test.end, process)
        self.processes[name] = process

    def start_server(self, i):
        # Every other one by its own command; both are the same.
        self.start_one(f"server{i}", "train" if i % 2 else "serve", TRAINING_ROLE="PSERVER", POD_IP="127.0.0.1",
                       PADDLE_PORT=str(self.ports[i]))

    def start_trainer(self, i):
        self.start_one(f"trainer{i}", "train", TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID=str(i))

    def wait_for(self, what, happened):
        deadline = time.monotonic() + DEADLINE_S
        while not happened() and self.processes["trainer0"].poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        self.test.assertTrue(happened(), what)

    def wait_for_checkpoint(self, name):
        path = os.path.join(self.output, "checkpoints", name)
        self.wait_for(path, lambda: os.path.exists(path))

    def wait_for_step(self, step):
        """Until it is in the records, or a later one."""
        self.wait_for(f"step {step}", lambda: max(self.test.losses(self.output), default=0) >= step)

    def end(self, role=""):
        """Exit code and outputs of every process of a role, by name."""
        ended = {}
        for name in [name for name in self.processes if name.startswith(role)]:
            code = self.processes.pop(name).wait(timeout=DEADLINE_S)
            with open(self.logs[name]) as log:
                ended[name] = (code, log.read())
        return ended

    def succeed(self):
        for name, (code, text) in self.end().items():
            self.test.assertEqual(code, 0, f"{name}: {text[-3000:]}")


class ParameterServer(WorkerTest):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="assay-ps-")
        self.addCleanup(shutil.rmtree, self.folder)
        write_ratings(os.path.join(self.folder, "train.csv"), 640, 1)
        write_ratings(os.path.join(self.folder, "test.csv"), 100, 2)
        places = {f"Data.{part}.dataset.input_dir": self.folder for part in ("Train", "Eval", "Test")}
        # Adam divides gradients by their size: an epsilon far above rounding keeps rounding small.
        self.sets = {**places, "Model.fields": [USERS, FILMS], "Model.dropout": 0, "Global.local_batch_size": 32,
                     "Engine.max_steps": STEPS, "Engine.num_train_epochs": 100, "Engine.logging_freq": 1,
                     "Engine.eval_freq": 1, "Engine.precision": "float64", "Optimizer.lr.learning_rate": 0.02,
                     "Optimizer.epsilon": 1e-3, "Engine.save_load.save_steps": 5, "Distributed.comm.time_limit_s": 20}

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.wait()

    def make(self, name, **more):
        output = os.path.join(self.folder, name)
        os.mkdir(output)
        return self.write_config(output, case("deepfm", **{**self.sets, **more})), output

    def of_servers(self, name, mode="sync", trainers=2, **more):
        batch = {"Global.local_batch_size": 32 // trainers}
        return self.make(name, **{"Distributed.ps.mode": mode, **batch, **more})

    def data_parallel(self, name, **more):
        """Two processes that update by themselves; the folder of their output."""
        output = os.path.join(self.folder, name)
        os.mkdir(output)
        sets = {**self.sets, "Global.local_batch_size": 16, **more}
        config = self.write_config(output, case("deepfm:libtorch::1:2:1", **sets))
        env = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_ports(1)[0]), "ASSAY_THREADS": "1"}
        for process in [self.start("train", config, output, env={**env, "RANK": str(rank)}) for rank in range(2)]:
            out, err = process.communicate(timeout=DEADLINE_S)
            self.assertEqual(process.returncode, 0, f"{out[-1000:]}\n{err}")
        return output

    def losses_of(self, output):
        return {step: float(loss) for step, loss in self.losses(output).items()}

    def weights_of(self, output):
        return tensor_file.load(os.path.join(output, "model.safetensors"))

    def assert_same_training(self, output, reference, limit=1e-10, floor=0):
        wanted, found = self.losses_of(reference), self.losses_of(output)
        self.assertEqual(sorted(found), list(range(1, STEPS + 1)))
        for step, loss in wanted.items():
            self.assertLessEqual(abs(found[step] - loss), limit * abs(loss), f"loss of step {step}")
        ours, theirs = self.weights_of(output), self.weights_of(reference)
        self.assertEqual(sorted(ours), sorted(theirs))
        for name, tensor in theirs.items():
            difference = (ours[name] - tensor).abs().max().item()
            self.assertLessEqual(difference, limit * max(tensor.abs().max().item(), floor), name)

    def test_equals_one_process_with_sync(self):
        config, alone = self.make("alone")
        self.run_worker("train", config, alone)
        for servers in 1, 2:
            config, output = self.of_servers(f"sync{servers}")
            Job(self, config, output, servers, 2).succeed()
            self.assert_same_training(output, alone)
            for metric in "final_accuracy", "final_loss", "steps", "num_samples":
                self.assertAlmostEqual(self.result(output)[metric], self.result(alone)[metric], places=9, msg=metric)
        # Servers have only the rows that some batch read, and all of a row is there.
        ends = [record["data"] for i in (2, 3) for record in self.records(output, f"records.rank{i}.jsonl")
                if record.get("name") == "SERVER_END"]
        self.assertEqual([end["server"] for end in ends], [0, 1])
        rows = {table["name"]: table["rows"] for table in ends[0]["tables"]}
        self.assertLessEqual(rows["embedding.weight"], (USERS + FILMS) // 2)
        self.assertGreater(rows["embedding.weight"], 0)
        self.assertEqual(ends[1]["num_updates"], STEPS)

    def check_mixed_precision(self, *precisions):
        """Two processes without servers round the same products. Only the order of sums differs, and what is rounded
        another way for it."""
        for dtype, level in precisions:
            with self.subTest(f"{dtype} {level}"):
                reference = self.data_parallel(f"dp {dtype} {level}", **mixed(dtype, level))
                config, output = self.of_servers(f"sync {dtype} {level}", **mixed(dtype, level))
                Job(self, config, output, 2, 2).succeed()
                self.assert_same_training(output, reference, 1e-3, floor=1e-2)

    def test_equals_data_parallelism_in_mixed_precision(self):
        self.check_mixed_precision(("bfloat16", "O2"))

    @long_test
    def test_equals_data_parallelism_in_every_mixed_precision(self):
        self.check_mixed_precision(("bfloat16", "O1"), ("bfloat16", "O2"), ("float16", "O1"), ("float16", "O2"))

    def test_skips_steps_that_overflow_in_all_trainers(self):
        """A scale far too large: steps overflow until it has come down. Only one of the trainers may have overflowed."""
        sets = {**mixed("float16", "O2"), "Engine.mix_precision.scale_loss": 2.0 ** 24, "Engine.max_steps": 40}
        config, output = self.of_servers("sync", **sets)
        Job(self, config, output, 2, 2).succeed()
        skipped = [[record["data"] for record in self.records(output, name) if record.get("name") == "STEP_SKIPPED"]
                   for name in ("records.jsonl", "records.rank1.jsonl")]
        self.assertGreater(len(skipped[0]), 2)
        self.assertEqual(skipped[0], skipped[1])
        ends = [record["data"] for record in self.records(output, "records.rank2.jsonl") if record.get("name") == "SERVER_END"]
        self.assertEqual(ends[0]["num_updates"], 40 - len(skipped[0]))
        losses = list(self.losses_of(output).values())
        self.assertLess(losses[-1], losses[0])

    @long_test
    def test_learns_in_float16_with_async_and_geo(self):
        for mode in "async", "geo":
            config, output = self.of_servers(mode, mode, **{"Distributed.ps.geo_steps": 5, **mixed("float16", "O2"),
                                                            "Engine.max_steps": 300})
            Job(self, config, output, 2, 2).succeed()
            losses = list(self.losses_of(output).values())
            self.assertLess(sum(losses[-20:]), 0.5 * sum(losses[:20]), mode)

    def test_resumes_after_a_killed_server(self):
        config, whole = self.of_servers("whole", **{"Model.dropout": 0.3, "Engine.max_steps": 600,
                                                    "Engine.save_load.save_steps": 200})
        Job(self, config, whole, 2, 2).succeed()

        killed = os.path.join(self.folder, "killed")
        job = Job(self, config, killed, 2, 2)
        job.wait_for_checkpoint("epoch_10_step_200")
        job.wait_for_step(203)
        os.kill(job.processes["server1"].pid, signal.SIGKILL)
        self.end(job.processes.pop("server1"))
        job.start_server(1)  # trainers find it again, and learn that it is behind
        ended = job.end("trainer")
        for name, (code, text) in ended.items():
            self.assertEqual(code, 13, f"{name}: {text[-2000:]}")
        self.assertTrue(any("started from its checkpoint of step" in text for _, text in ended.values()),
                        [text[-500:] for _, text in ended.values()])
        # Both servers are still there; the trainers start again from their checkpoint, and everyone agrees on its step.
        for i in range(2):
            job.start_trainer(i)
        job.succeed()
        resumed = [record for record in self.records(killed) if record.get("name") == "RESUMED"]
        self.assertEqual(len(resumed), 1)
        self.assertGreaterEqual(resumed[0]["data"]["global_step"], 200)
        self.assertEqual(self.losses(killed), self.losses(whole))
        self.assertEqual(self.result(killed)["hashes"]["weights"], self.result(whole)["hashes"]["weights"])

    def test_names_a_killed_trainer(self):
        config, output = self.of_servers("lost", **{"Engine.max_steps": 100000})
        job = Job(self, config, output, 1, 2)
        job.wait_for_checkpoint("epoch_0_step_5")
        os.kill(job.processes["trainer1"].pid, signal.SIGKILL)
        code, text = job.end("trainer0")["trainer0"]
        self.assertEqual(code, 13, text[-1000:])
        self.assertIn("trainer 1 was lost", text)

    def test_saves_at_a_stop_and_continues(self):
        # Far more steps than are made until the signal arrives.
        config, whole = self.of_servers("whole", **{"Engine.max_steps": 400})
        Job(self, config, whole, 2, 2).succeed()
        stopped = os.path.join(self.folder, "stopped")
        job = Job(self, config, stopped, 2, 2)
        job.wait_for_checkpoint("epoch_0_step_5")
        for process in job.processes.values():
            process.send_signal(signal.SIGTERM)
        for name, (code, text) in job.end().items():
            self.assertEqual(code, 130, f"{name}: {text[-2000:]}")
        Job(self, config, stopped, 3, 2).succeed()  # with another number of servers
        self.assertEqual(self.losses(stopped), self.losses(whole))
        self.assertEqual(self.result(stopped)["hashes"]["weights"], self.result(whole)["hashes"]["weights"])

    def test_learns_with_async_and_geo(self):
        for mode in "async", "geo":
            config, output = self.of_servers(mode, mode, **{"Distributed.ps.geo_steps": 5, "Engine.max_steps": 300,
                                                            "Engine.precision": "float32"})
            Job(self, config, output, 2, 2).succeed()
            losses = list(self.losses_of(output).values())
            self.assertEqual(len(losses), 300)
            self.assertLess(sum(losses[-20:]), 0.5 * sum(losses[:20]), mode)
            self.assertGreater(self.result(output)["final_accuracy"], 0.8)
            with open(os.path.join(output, "checkpoints", sorted(os.listdir(os.path.join(output, "checkpoints")))[0],
                                   "meta.json")) as file:
                self.assertEqual(json.load(file)["placement"]["parameter_servers"], 2)

    def test_rejects_what_does_not_fit(self):
        servers = {"PADDLE_PSERVERS_IP_PORT_LIST": f"127.0.0.1:{free_ports(1)[0]}", "PADDLE_TRAINERS_NUM": "1",
                   "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "0"}
        config, output = self.make("none")
        _, err = self.run_worker("train", config, output, env=servers, code=2)
        self.assertIn("Distributed.ps.mode is none", err)
        config, output = self.of_servers("nowhere")
        _, err = self.run_worker("train", config, output, code=2)
        self.assertIn("PADDLE_PSERVERS_IP_PORT_LIST", err)
        _, err = self.run_worker("serve", config, output, env=servers, code=2)
        self.assertIn("TRAINING_ROLE is not PSERVER", err)
        config, output = self.of_servers("clipped", trainers=1, **{"Optimizer.grad_clip.clip_norm": 1.0})
        job = Job(self, config, output, 1, 1)
        code, text = job.end("trainer")["trainer0"]
        self.assertEqual(code, 2, text)
        self.assertIn("grad_clip", text)


class Launched(CliTest):
    """The same, started by assay."""

    def setUp(self):
        super().setUp()
        self.data = parallel_data.prepare("deepfm", self.assay, self.folder / "data")

    def train(self, *words):
        sets = ["Distributed.ps.mode=sync", "Distributed.comm.time_limit_s=20", "Global.local_batch_size=16",
                "Engine.max_steps=600", "Engine.num_train_epochs=1000", "Engine.logging_freq=20", "Engine.eval_freq=10",
                "Engine.save_load.save_steps=100", "Engine.save_load.save_epoch=-1"]
        arguments = [word for setting in sets for word in ("--set", setting)]
        return "train", "deepfm", "--server_num", 2, "--worker_num", 2, *self.data, *arguments, *words

    def weights(self, run):
        records = json_lines(run / "steps/1-train/records.jsonl")
        return [record for record in records if record["type"] == "result"][-1]["data"]["hashes"]["weights"]

    def server_pids(self, run):
        return [pid for pid in processes_with(str(run)) if b"TRAINING_ROLE=PSERVER" in
                pathlib.Path(f"/proc/{pid}/environ").read_bytes()]

    def test_restarts_a_killed_server_and_ends_the_same(self):
        self.assay(*self.train(), ASSAY_THREADS="1")
        process = self.start(*self.train(), ASSAY_THREADS="1")
        deadline = time.monotonic() + DEADLINE_S
        killed = False
        while not killed and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
            for run in self.runs()[1:]:
                saved = list(run.glob("steps/1-train/output/checkpoints/*_step_*"))
                servers = self.server_pids(run) if saved else []
                if len(servers) == 2:
                    os.kill(servers[1], signal.SIGKILL)
                    killed = True
        out, err = process.communicate(timeout=DEADLINE_S)
        self.assertTrue(killed, err[-2000:])
        self.assertEqual(process.returncode, 0, out + err)
        first, second = self.runs()
        restarts = [line for line in json_lines(second / "journal.jsonl") if line["event"] == "step_restarted"]
        self.assertEqual(len(restarts), 1, restarts)
        self.assertEqual(self.weights(first), self.weights(second))
        self.assertEqual(self.server_pids(second), [])

    def test_needs_a_mode_for_servers_and_shows_them_in_the_plan(self):
        done = self.assay(*self.train("--dry-run"))
        self.assertIn("servers  2 of them, for 2 trainers", done.stdout + done.stderr)
        done = self.assay("train", "deepfm", "--server_num", 2, *self.data, expect=2)
        self.assertIn("Distributed.ps.mode is none", done.stderr)


if __name__ == "__main__":
    unittest.main()
