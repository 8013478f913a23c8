"""kill -9 at twenty random moments of the demo, then resume: same verdict, nothing finished repeated, no record lost."""
import json
import random
import signal
import time
import unittest

from support import CliTest, json_lines, processes_with

SHORT = ["--case", "simplenet", "--set", "Engine.num_train_epochs=1", "--set", "target.value=0.7",
         "--set", "Data.Train.dataset.limit=20000", "--set", "Data.Eval.dataset.limit=2000", "--set", "Data.Test.dataset.limit=2000",
         "--set", "Engine.save_load.save_steps=50"]
NUM_KILLS = 20


def finished_steps(run):
    return [line["step"] for line in json_lines(run / "journal.jsonl") if line["event"] == "step_ended"]


def records_of(run):
    """Every complete record line of every step."""
    lines = {}
    for path in sorted(run.glob("steps/*/records*.jsonl")):
        text = path.read_bytes()
        lines[path.relative_to(run)] = text[:text.rfind(b"\n") + 1].splitlines()
    return lines


def losses_by_step(run):
    losses = {}
    for line in json_lines(run / "steps/1-train/records.jsonl"):
        data = line.get("data", {})
        if "train.loss" in data:
            losses.setdefault(data["global_step"], set()).add(data["train.loss"])
    return losses


class Kill(CliTest):
    def test_survives_twenty_kills(self):
        started = time.time()
        whole = json.loads(self.assay("demo", *SHORT, "--json").stdout)
        length = time.time() - started
        reference = losses_by_step(self.runs()[0])
        self.assertTrue(reference)
        random.seed(20)
        num_mid_run = 0
        for kill in range(NUM_KILLS):
            earlier = self.runs()
            self.start_and_kill(length * (kill + random.random()) / NUM_KILLS)
            new = [run for run in self.runs() if run not in earlier]
            if not new:
                continue  # killed before there was a run: nothing to resume
            run = new[0]
            before = records_of(run)
            num_mid_run += (run / "journal.jsonl").read_text().count('"step_ended"') < 5
            self.assertEqual(processes_with(run.name), [], "the kill left processes")
            result = json.loads(self.assay("resume", run, "--json").stdout)
            self.assertEqual(result["outcome"], "Pass")
            self.assertEqual([v["outcome"] for v in result["verdicts"]], [v["outcome"] for v in whole["verdicts"]])
            ended = finished_steps(run)
            self.assertEqual(sorted(ended), sorted(set(ended)), "a finished step ran again")
            for path, lines in before.items():
                after = records_of(run)[path]
                self.assertEqual(after[:len(lines)], lines, f"records of {path} were lost")
            for step, values in losses_by_step(run).items():
                self.assertEqual(values, reference[step], f"step {step}: the resumed run computed something else")
        self.assertGreater(num_mid_run, NUM_KILLS // 2, "most kills must hit a run in progress")

    def start_and_kill(self, seconds):
        process = self.start("demo", *SHORT)
        time.sleep(seconds)
        process.kill()
        process.wait()
        # The kernel ends the children at once, but not before our next look.
        time.sleep(0.2)


class Interrupt(CliTest):
    def test_stops_cleanly_at_ctrl_c_and_resumes(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            earlier = self.runs()
            process = self.start("demo", *SHORT)
            deadline = time.time() + 60
            while time.time() < deadline:
                new = [run / "steps/1-train/records.jsonl" for run in self.runs() if run not in earlier]
                if new and new[0].exists() and b"train.loss" in new[0].read_bytes():
                    break
                time.sleep(0.05)
            process.send_signal(number)
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, err)
            self.assertIn("assay resume", err)
            run = self.runs()[-1]
            self.assertEqual(processes_with(run.name), [])
            self.assay("resume", "last")
            events = [line["event"] for line in json_lines(run / "journal.jsonl")]
            self.assertIn("run_interrupted", events)
            resumed = [line for line in json_lines(run / "steps/1-train/records.jsonl") if line.get("name") == "RESUMED"]
            self.assertEqual(len(resumed), 1, "training continued from the checkpoint that the stop wrote")

    def test_rejects_a_second_controller(self):
        process = self.start("demo", *SHORT)
        deadline = time.time() + 60
        while not self.runs() and time.time() < deadline:
            time.sleep(0.02)
        done = self.assay("resume", "last", expect=4)
        self.assertIn(str(process.pid), done.stderr)
        process.kill()
        process.wait()


if __name__ == "__main__":
    unittest.main(verbosity=2)
