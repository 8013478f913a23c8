"""A home with cases of its own, quick enough to be run by the dozen: their command is a script that does what its arguments say."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from support import CliTest, SOURCE, json_lines, processes_with

SCRIPT = """import os, signal, sys, time
what, count = sys.argv[1], int(sys.argv[2])
rank = int(os.environ["RANK"])
gate = os.environ.get("GATE", "/no/gate")
print(f"rank {rank} of {os.environ['WORLD_SIZE']} on {os.uname().nodename}, device {os.environ.get('FAKE_DEVICES')}", flush=True)
for step in range(1, count + 1):
    time.sleep(0.05)
    if rank == 0:
        print(f"step {step} loss {1 / step:.4f} ips {1000 + step}", flush=True)
    if what == "fail" and step == 3 and rank == int(os.environ["WORLD_SIZE"]) - 1 and not os.path.exists(gate):
        print("error: it broke", flush=True)
        sys.exit(7)
    if what == "die" and step == 3 and rank == int(os.environ["WORLD_SIZE"]) - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hang" and step == 3:
        time.sleep(1000)
    if what == "chatter" and step == 3:
        with open(os.environ["ASSAY_RECORDS"], "a") as records:
            records.write('{"type":"message","time_us":0,"data":{"text":"the last one"}}\\n')
        while True:
            print("waiting", flush=True)
            time.sleep(0.1)
    while what == "gate" and step == 3 and not os.path.exists(gate):
        time.sleep(0.02)
if rank == 0:
    print("accuracy 0.91", flush=True)
"""

CASE = """model: quick
framework: pytorch
task: nothing
source: this test
licence: Apache-2.0
entry: [python3, run.py, "{what}", "{count}"]
data: {name: none, layout: none}
target: {metric: accuracy, value: 0.9, goal: maximize}
mutable: [what, count]
config:
  what: work
  count: 5
  patterns:
    - {match: "^step ([0-9]+) loss ([^ ]+) ips ([^ ]+)", names: [step, train.loss, train.ips]}
    - {match: "^accuracy ([^ ]+)", names: [final_accuracy], kind: result}
"""

VENDOR = """name: fake
hardware:
  chip: {visible_devices: FAKE_DEVICES, devices: 8}
  disc: {visible_devices: OTHER_DEVICES, devices: 8}
"""


class CampaignTest(CliTest):
    def setUp(self):
        super().setUp()
        self.home = self.folder / "home"
        (self.home / "cases/quick").mkdir(parents=True)
        (self.home / "cases/quick/run.py").write_text(SCRIPT)
        (self.home / "cases/quick/case.yaml").write_text(CASE)
        configs = self.home / "vendors/fake/quick"
        configs.mkdir(parents=True)
        (self.home / "vendors/fake/vendor.yaml").write_text(VENDOR)
        for nnodes in 1, 2, 64:
            for nproc in 1, 2:
                (configs / f"config_chipx{nnodes}x{nproc}.yaml").write_text("# as it is\n")

    def environment(self, **more):
        locks = self.folder / "locks"
        return {**super().environment(), "ASSAY_HOME": str(self.home), "ASSAY_LOCKS": str(locks),
                "PATH": "/usr/local/sbin:/usr/sbin:/usr/bin:/bin", **more}

    def assay(self, *arguments, timeout=300, **more):
        return super().assay(*arguments, timeout=timeout, **more)

    def write(self, cases, name="campaign.yaml", **more):
        """campaign.yaml: cases by key, and other keys of the file; JSON is YAML."""
        cases = {key: {"data": str(self.home), **(case or {})} for key, case in cases.items()}
        text = {"campaign": "test", "vendor": "fake", "monitor": {"interval": 0.2}, "lease": 15, **more, "cases": cases}
        (self.folder / name).write_text(json.dumps(text))
        return name

    def last_run(self):
        return max(self.runs(), key=lambda run: (run / "plan.json").stat().st_mtime_ns)

    def journal(self, run=None):
        return json_lines((run or self.last_run()) / "journal.jsonl")

    def ends(self, run=None):
        return {line["step"]: line for line in self.journal(run) if line["event"] == "step_ended"}

    def check_put_right(self, **more):
        """A case that fails, is put right and repeated: its records are those of the second attempt, and of no other."""
        gate = self.folder / "gate"
        self.write({"quick:pytorch:chip:1:1:1": {"set": {"what": "fail"}}}, environment={"GATE": str(gate)}, **more)
        self.assay("run", "campaign.yaml", expect=1)
        step = self.last_run() / "steps/1-quick-pytorch-chip-1x1"
        self.assertEqual([record["step"] for record in json_lines(step / "records.jsonl")], [[1], [2], [3]])
        gate.touch()
        self.assay("resume", "last", "--retry-failed")
        records = json_lines(step / "records.jsonl")
        self.assertEqual([record["step"] for record in records[:-1]], [[1], [2], [3], [4], [5]])
        self.assertEqual(records[-1]["data"], {"final_accuracy": 0.91})
        result = json.loads(self.assay("report", "last", "--json").stdout)["results"][0]
        self.assertEqual(result["final_accuracy"], 0.91)
        self.assertIn("error: it broke", (step / "rank0.log").read_text())  # the log has both

    def wait_until(self, what, true, seconds=60):
        begin = time.time()
        while not true():
            if time.time() - begin > seconds:
                self.fail(f"not within {seconds} s: {what}")
            time.sleep(0.01)

    def wait_for_log(self, text, seconds=60):
        """Until a log of the last run has the text."""
        def found():
            return any(text in path.read_text(errors="replace") for run in self.runs() for path in run.glob("steps/*/rank*.log"))
        self.wait_until(f"{text!r} in a log", found, seconds)

    def assert_nothing_runs(self, run=None, seconds=60):
        mark = (run or self.last_run()).name
        self.wait_until(f"no process of {mark}: {processes_with(mark)}", lambda: not processes_with(mark), seconds)

    def check_whole(self, run):
        """Every step passed, once, and nothing runs."""
        ends = [line for line in self.journal(run) if line["event"] == "step_ended"]
        names = [line["step"] for line in ends]
        self.assertEqual(len(names), len(set(names)), names)
        self.assertEqual({line["outcome"] for line in ends}, {"Pass"})
        self.assertEqual(self.journal(run)[-1]["event"], "run_ended")
        self.assert_nothing_runs(run)
