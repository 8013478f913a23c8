"""What the tests of assay-worker share: a small data set, configurations, and running the worker."""
import gzip
import json
import os
import struct
import subprocess
import sys
import unittest

from support import DEADLINE_S

BIN = os.environ.get("ASSAY_BIN", os.path.join(os.path.dirname(__file__), "../../build/release/bin"))
SOURCE = os.environ.get("ASSAY_SOURCE", os.path.join(os.path.dirname(__file__), "../.."))
ASSAY = os.path.join(BIN, "assay")
WORKER = os.path.join(BIN, "assay-worker")
FASHION = "/usr/share/datasets/fashion-mnist"
sys.path.insert(0, os.path.join(SOURCE, "tests/peers"))


def case(name, *words, home=SOURCE, **sets):
    """The configuration of a case, with values set: case("resnet", **{"Engine.max_steps": 3})."""
    more = [item for key, value in sets.items() for item in ("--set", f"{key}={json.dumps(value)}")]
    output = subprocess.run([ASSAY, "--home", home, "config", name, "--worker", *words, *more], check=True, capture_output=True)
    return json.loads(output.stdout)


def mixed(dtype, level):
    return {"Engine.precision": "float32", "Engine.mix_precision.enable": True, "Engine.mix_precision.dtype": dtype,
            "Engine.mix_precision.level": level}


def write_idx(path, shape, data):
    with gzip.open(path, "wb") as file:
        file.write(struct.pack(">BBBB", 0, 0, 8, len(shape)) + struct.pack(f">{len(shape)}I", *shape) + data)


class WorkerTest(unittest.TestCase):
    @staticmethod
    def write_config(folder, config):
        path = os.path.join(folder, "config.json")
        with open(path, "w") as file:
            json.dump(config, file)
        return path

    def start(self, command, config, output, *arguments, env=None):
        return subprocess.Popen(
            [WORKER, command, "--config", config, "--output", output, *arguments], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **(env or {})})

    def run_worker(self, command, config, output, *arguments, env=None, code=0):
        process = self.start(command, config, output, *arguments, env=env)
        out, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, code, f"{command}: {out[-2000:]}\n{err}")
        return out, err

    def records(self, output, name="records.jsonl"):
        with open(os.path.join(output, name)) as file:
            return [json.loads(line) for line in file]

    def losses(self, output):
        """Exact text of every logged training loss by global step; after a resume the later attempt counts."""
        found = {}
        for record in self.records(output):
            if record.get("name") == "RESUMED":
                found = {step: loss for step, loss in found.items() if step <= record["data"]["global_step"]}
            if "train.loss" in record.get("data", {}):
                found[record["data"]["global_step"]] = repr(record["data"]["train.loss"])
        return found

    def result(self, output):
        return [record for record in self.records(output) if record["type"] == "result"][-1]["data"]
