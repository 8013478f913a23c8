"""Training in several processes: ranks, restarts, and assay verify parallel, which proves every strategy equal to one process."""
import json
import os
import pathlib
import signal
import socket
import time
import unittest

import parallel_data
from support import DEADLINE_S, SLOWER, CliTest, json_lines, long_test, processes_with

import worker_support  # makes tests/peers importable
import tensor_file

TINY = ["Model.hidden_size=32", "Model.num_layers=4", "Model.num_attention_heads=4", "Model.ffn_hidden_size=64",
        "Model.max_position_embeddings=16", "Data.Train.dataset.max_seq_len=16", "Global.local_batch_size=4",
        "Model.hidden_dropout_prob=0", "Model.attention_probs_dropout_prob=0", "Data.Eval=null", "Engine.logging_freq=1",
        "Engine.num_train_epochs=1000000"]


def sets(settings):
    return [word for setting in settings for word in ("--set", setting)]


class ParallelTest(CliTest):
    def prepare(self, name):
        folder = self.folder / f"data-{name}"
        return parallel_data.settings(name, folder) if folder.exists() else parallel_data.prepare(name, self.assay, folder)

    def train_words(self, *more):
        if not hasattr(self, "data"):
            self.data = self.prepare("gpt")
        return ["train", "gpt", *self.data, *sets(TINY), *map(str, more)]

    def weights(self, run):
        return tensor_file.load(str(run / "steps/1-train/output/model.safetensors"))

    def journal(self, run, event):
        return [line for line in json_lines(run / "journal.jsonl") if line["event"] == event]


class Ranks(ParallelTest):
    def test_trains_in_four_ranks(self):
        self.assay(*self.train_words("--step", 4, "--nproc_per_node", 4, "--set", "Distributed.mp_degree=2"))
        run, = self.runs()
        step = run / "steps/1-train"
        self.assertEqual(sorted(path.name for path in step.glob("rank*.log")), [f"rank{r}.log" for r in range(4)])
        plan = json.loads((run / "plan.json").read_text())
        self.assertEqual((plan["steps"][0]["nproc"], plan["steps"][0]["max_restarts"]), (4, 3))
        losses = [r["data"]["train.loss"] for r in json_lines(step / "records.jsonl") if "train.loss" in r.get("data", {})]
        self.assertEqual(len(losses), 4)
        self.assertEqual(json.loads((run / "result.json").read_text())["outcome"], "Pass")

    def test_rejects_a_port_that_is_taken(self):
        words = self.train_words("--step", 2, "--nproc_per_node", 2)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            done = self.assay(*words, "--master_port", port, expect=4)
        self.assertIn(f"port {port} is in use", done.stderr)
        self.assertEqual(self.runs(), [], "nothing was started")

    def test_tries_an_interface_that_does_not_exist_once(self):
        done = self.assay(*self.train_words("--step", 2, "--nproc_per_node", 2, "--set", "Distributed.comm.interface=nosuch"), expect=13)
        self.assertIn("network interface 'nosuch' does not exist; those with an address: ", done.stderr)
        self.assertIn("lo 127.0.0.1", done.stderr)
        run, = self.runs()
        self.assertEqual(self.journal(run, "step_restarted"), [])

    def test_names_a_rank_that_does_not_join_in_time(self):
        begin = time.monotonic()
        done = self.assay(*self.train_words("--step", 2, "--nproc_per_node", 2, "--nnode", 2, "--node_rank", 0, "--master_addr",
                                            "127.0.0.1", "--set", "Distributed.comm.join_limit_s=6"), expect=13)
        self.assertIn("ranks 2 and 3 of 4 processes did not join within 6 s", done.stderr)
        self.assertLess(time.monotonic() - begin, 120 * SLOWER, "it gives up at the limit")
        run, = self.runs()
        self.assertEqual(self.journal(run, "step_restarted"), [])

    def test_rejects_a_strategy_that_does_not_fit_before_training(self):
        done = self.assay(*self.train_words("--step", 2, "--nproc_per_node", 2, "--set", "Distributed.mp_degree=3"), expect=2)
        self.assertIn("Distributed.mp_degree", done.stderr)
        self.assertEqual(self.runs(), [])


class Restart(ParallelTest):
    """A training long enough to be disturbed, with a checkpoint every few steps."""
    STEPS = 300
    undisturbed = None  # weights of a training that nobody disturbed, made by the first test that needs them

    def assert_undisturbed_weights(self, run):
        if Restart.undisturbed is None:
            self.assay("--runs", self.folder / "whole", *self.words())
            whole, = (self.folder / "whole").glob("[!.]*/steps")
            Restart.undisturbed = self.weights(whole.parent)
        ours = self.weights(run)
        self.assertEqual(ours.keys(), self.undisturbed.keys())
        for name, tensor in ours.items():
            self.assertTrue((tensor == self.undisturbed[name]).all().item(), name)

    def words(self, *more):
        return self.train_words("--step", self.STEPS, "--nproc_per_node", 2, "--set", "Engine.save_load.save_steps=10", *more)

    def wait_for_step(self, step):
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            runs = self.runs()
            if runs:
                records = runs[-1] / "steps/1-train/records.jsonl"
                if records.exists() and f'"global_step":{step}' in records.read_text():
                    return runs[-1]
            time.sleep(0.02)
        self.fail(f"step {step} was not reached")

    def rank_process(self, run, rank):
        found = [pid for pid in processes_with(f"ASSAY_TREE={run.name}/train/{rank}\0")
                 if f"\0RANK={rank}\0".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes()]
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_restarts_after_a_killed_rank_and_loses_nothing(self):
        process = self.start(*self.words())
        run = self.wait_for_step(25)
        os.kill(self.rank_process(run, 1), signal.SIGKILL)
        out, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 0, err)
        restart, = self.journal(run, "step_restarted")
        self.assertIn("rank 1: killed by signal 9", restart["reason"])
        self.assertIn("restart 1 of at most 3", err)
        self.assertIn("restarted 1 time: rank 1: killed by signal 9", out)
        self.assertIn("restarted 1 time: rank 1: killed by signal 9", (run / "report.md").read_text())
        self.assert_undisturbed_weights(run)
        self.assertEqual(processes_with(f"ASSAY_TREE={run.name}/"), [])

    def test_names_the_killed_rank_without_restarts(self):
        process = self.start(*self.words("--set", "Distributed.max_restarts=0"))
        run = self.wait_for_step(5)
        os.kill(self.rank_process(run, 0), signal.SIGKILL)
        out, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 128 + 9, err)
        self.assertIn("rank 0: killed by signal 9", err)
        self.assertEqual(self.journal(run, "step_restarted"), [])
        self.assertEqual(processes_with(f"ASSAY_TREE={run.name}/"), [])

    def test_resumes_after_a_killed_controller_which_leaves_nothing(self):
        process = self.start(*self.words())
        run = self.wait_for_step(25)
        process.kill()
        process.communicate()
        deadline = time.monotonic() + DEADLINE_S
        while processes_with(f"ASSAY_TREE={run.name}/") and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(processes_with(f"ASSAY_TREE={run.name}/"), [])
        self.assay("resume", run)
        self.assert_undisturbed_weights(run)

    def test_resumes_after_an_interruption_without_a_restart(self):
        process = self.start(*self.words())
        run = self.wait_for_step(15)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(self.journal(run, "step_restarted"), [])
        self.assertEqual(processes_with(f"ASSAY_TREE={run.name}/"), [])
        self.assay("resume", run)


class Verify(ParallelTest):
    def verify(self, name, *words, expect=0, **env):
        done = self.assay("verify", "parallel", name, "--tiny", *self.prepare(name), *words, expect=expect, timeout=2 * DEADLINE_S, **env)
        run = self.runs()[-1]
        result = json.loads((run / "result.json").read_text())
        return done, run, {(v["row"], v["column"]): v for v in result["verdicts"]}

    def check_gpt(self, precisions, *words):
        """By every strategy in these precisions."""
        done, run, cells = self.verify("gpt", *words)
        num_cells = len(precisions) * 17
        self.assertEqual(len(cells), num_cells)
        self.assertEqual({column for _, column in cells}, set(precisions))
        for place, verdict in cells.items():
            self.assertEqual(verdict["outcome"], "Pass", (place, verdict["reason"]))
        self.assertIn("Against one process", done.stdout)
        self.assertEqual(list(run.glob("steps/*/output/checkpoints")), [], "nothing large is left")
        self.assertEqual(len(list(run.glob("steps/*/comparison.json"))), num_cells)
        # The verdicts are those of the evidence that was kept.
        self.assay("report", run)
        for text in "tp2xpp2", "Against one process":
            self.assertIn(text, (run / "report.html").read_text())

    def test_proves_every_strategy_for_gpt(self):
        self.check_gpt(["float64"], "--precision", "float64", "--steps", 4)

    @long_test
    def test_proves_every_strategy_for_gpt_in_both_precisions(self):
        self.check_gpt(["float64", "float32"])

    def check_model(self, name, strategies=None, precision="float64", skipped=()):
        """By these strategies, or by all."""
        some = ["--strategies", ",".join(strategies)] if strategies else []
        _, _, cells = self.verify(name, "--precision", precision, "--steps", 6, *some)
        self.assertEqual(len(cells), len(strategies) if strategies else 17)
        for (strategy, column), verdict in cells.items():
            self.assertEqual(column, precision)
            self.assertEqual(verdict["outcome"], "Skipped" if strategy in skipped else "Pass", (strategy, verdict["reason"]))

    # Model -> strategies that take it apart as no other model does: for the short set.
    SHORT = {"llama": ["tp2xpp2"], "glm": ["sp", "interleaved"], "bert": ["sharded3x2", "tp2xpp2"], "resnet": ["dp2", "sp", "pp2"],
             "deepfm": ["sharded1x2", "tp2"]}

    def test_proves_some_strategies_for_every_model(self):
        for name, strategies in self.SHORT.items():
            with self.subTest(name):
                self.check_model(name, strategies, skipped=["sp"] if name == "resnet" else [])

    SOME = ["dp2", "sharded3x2", "tp2", "sp", "pp2", "interleaved", "tp2xpp2"]

    @long_test
    def test_proves_strategies_for_llama(self):
        self.check_model("llama", self.SOME)

    @long_test
    def test_proves_strategies_for_glm(self):
        self.check_model("glm", self.SOME)

    @long_test
    def test_proves_every_strategy_for_bert(self):
        self.check_model("bert")

    @long_test
    def test_proves_every_strategy_for_resnet(self):
        self.check_model("resnet", skipped=["sp"])

    @long_test
    def test_proves_every_strategy_for_deepfm(self):
        self.check_model("deepfm", skipped=["sp"])

    @long_test
    def test_proves_strategies_in_float32(self):
        for name in "bert", "resnet", "deepfm":
            with self.subTest(name):
                self.check_model(name, ["dp2", "sharded3x2", "tp2xpp2"], "float32")

    def test_finds_and_locates_a_wrong_strategy(self):
        for strategy, broken in ("dp2", "dp-no-sync"), ("sharded1x2", "sharded-no-gather"), ("pp2", "pp-no-tie"):
            with self.subTest(broken):
                done, run, cells = self.verify("gpt", "--steps", 4, "--strategies", strategy, "--precision", "float64", expect=1,
                                               ASSAY_BREAK_STRATEGY=broken)
                verdict = cells[strategy, "float64"]
                self.assertEqual(verdict["outcome"], "Fail")
                self.assertRegex(verdict["reason"], r"^first at step \d: \S+\[[0-9,]+\] is .* apart\), ranks? \d")
                self.assertIn(verdict["reason"].split(" is ")[0], done.stdout.replace("\n  ", " "))
                kept = list(run.glob(f"steps/2-{strategy}-float64/output/checkpoints/*/model.safetensors"))
                self.assertEqual(len(kept), 4, "kept")

    def test_shows_plan_and_list_and_explains_mistakes(self):
        listed = json.loads(self.assay("verify", "parallel", "--list", "--json").stdout)
        self.assertEqual(len(listed), 17)
        self.assertIn("Distributed.mp_degree=2", [strategy for strategy in listed if strategy["name"] == "tp2"][0]["keys"])
        plan = self.assay("verify", "parallel", "gpt", "--tiny", "--strategies", "pp2", "--dry-run").stdout
        self.assertIn("one-process-float64", plan)
        self.assertIn('"max_relative":1e-10', plan)
        self.assertEqual(self.runs(), [])
        done = self.assay("verify", "parallel", "gpt", "--strategies", "dp3", expect=2)
        self.assertIn("did you mean 'dp2'?", done.stderr)
        self.assertIn("case is required", self.assay("verify", "parallel", expect=2).stderr)


if __name__ == "__main__":
    unittest.main()
