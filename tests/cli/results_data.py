"""Run folders for the tests of results, made by formulas: plan, journal and records as `assay` writes them."""
import datetime
import hashlib
import json
import random

BASE = datetime.datetime(2026, 11, 15, 8, 0, 0)
ENVIRONMENT = {
    "host": {"name": "bench-01", "system": "Debian GNU/Linux 12", "kernel": "6.1.0", "architecture": "x86_64"},
    "processor": {"model": "Test CPU 9000", "cores": 64},
    "memory": {"total_bytes": 64 * 2**30},
    "assay": {"version": "0.1.0", "commit": "abc"},
}


def when(seconds):
    return (BASE + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def plan_step(name, case, round_, nproc=1, nnodes=1, kind="train", files=None):
    """In the order in which assay writes the members: the hash of the plan depends on it."""
    step = {"name": name, "kind": kind, "needs": []}
    if nnodes != 1:
        step.update(nnodes=nnodes, node_rank=0)
    if case:
        step["case"] = case
    if round_:
        step["round"] = round_
    step.update(argv=["true"], env={}, nproc=nproc, time_limit_s=None, files=files or {}, outputs=[])
    return step


def line(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def result_record(throughput, accuracy=0.91, unit="images/s", **more):
    data = {"e2e_time": 60000 / throughput + 2, "init_time": 1.0, "raw_train_time": 60000 / throughput + 1,
            "no_eval_time": 60000 / throughput, "pure_compute_time": 54000 / throughput,
            "p_whole": throughput * 0.95, "p_train": throughput, "p_core": throughput * 1.1, "unit": unit,
            "converged": True, "final_accuracy": accuracy,
            "target": {"metric": "accuracy", "value": 0.9, "goal": "maximize"}, "steps": 100, "mfu": None,
            "peak_memory_bytes": 2**30, "energy_joules": None, "seed": 1024,
            "hashes": {"case": "c" * 64, "data": "d" * 64, "code": "abc", "weights": "e" * 64}}
    data.update(more)
    return {"type": "result", "time_us": 1, "name": "simplenet", "data": data}


def step_records(seconds, count=40, slow=()):
    """Training records that tell the time of a step; `slow` ones take ten times as long."""
    out = []
    for i in range(count):
        took = seconds * (10 if i in slow else 1)
        out.append({"type": "metrics", "time_us": 10**9 + i, "step": [1, i + 1],
                    "data": {"global_step": i + 1, "train.loss": 1.0, "train.data_time": took * 0.1,
                             "train.compute_time": took * 0.9}})
    return out


class Campaign:
    """One run folder. add() describes the rounds, write() makes it."""

    def __init__(self, name, start=0.0, environment=None, case=""):
        self.name, self.start, self.case = name, start, case
        self.environment = ENVIRONMENT if environment is None else environment
        self.steps, self.records, self.ends, self.extra = [], {}, {}, {}

    def add(self, case, round_, records, outcome="Pass", reason="", seconds=30.0, disturbance=None, files=None, **plan):
        name = f"case{len(self.steps) + 1}"
        self.steps.append(plan_step(name, case, round_, files=files, **plan))
        self.records[name] = records if isinstance(records, str) else "".join(line(r) + "\n" for r in records)
        self.ends[name] = {"outcome": outcome, "reason": reason, "seconds": seconds}
        self.extra[name] = {"disturbance.json": json.dumps(disturbance)} if disturbance is not None else {}
        return self

    def rounds(self, case, throughputs, **plan):
        """One round a value, each with a result and 40 timed steps."""
        for i, throughput in enumerate(throughputs):
            self.add(case, i + 1, step_records(32 / throughput) + [result_record(throughput)], **plan)
        return self

    def write(self, runs):
        folder = runs / self.name
        folder.mkdir(parents=True)
        plan = {"schema": "assay/plan-v1", "title": self.name, "case": self.case, "steps": self.steps}
        (folder / "plan.json").write_text(json.dumps(plan, indent=2) + "\n")
        (folder / "environment.json").write_text(json.dumps(self.environment))
        clock = self.start
        sha = hashlib.sha256(line(plan).encode()).hexdigest()
        journal = [{"event": "run_started", "run": self.name, "plan": sha, "command": ["assay", "run"], "time": when(clock)}]
        worst = "Pass"
        for number, step in enumerate(self.steps, 1):
            name, end = step["name"], self.ends[step["name"]]
            journal.append({"event": "step_started", "step": name, "attempt": 1, "time": when(clock)})
            clock += end["seconds"]
            good = end["outcome"] == "Pass"
            worst = worst if good else "Error"
            journal.append({"event": "step_ended", "step": name, "attempt": 1, **end, "exit_code": 0 if good else 1,
                            "signal": None, "rank": None, "restarts": 0, "max_rss_bytes": 2**28, "time": when(clock)})
            inside = folder / "steps" / f"{number}-{name}"
            inside.mkdir(parents=True)
            (inside / "records.jsonl").write_text(self.records[name])
            for file, content in self.extra[name].items():
                (inside / file).write_text(content)
        journal.append({"event": "run_ended", "outcome": worst, "time": when(clock)})
        (folder / "journal.jsonl").write_text("".join(line(entry) + "\n" for entry in journal))
        return folder


def noisy(mean, count, spread, seed):
    """Values around a mean, always the same for a seed."""
    rng = random.Random(seed)
    return [mean * (1 + spread * rng.uniform(-1, 1)) for _ in range(count)]
