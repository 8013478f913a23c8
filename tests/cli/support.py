"""What the whole-program tests share: running `assay`, temporary folders, reading run folders."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BIN = pathlib.Path(os.environ.get("ASSAY_BIN", "build/release/bin")).resolve()
SOURCE = pathlib.Path(os.environ.get("ASSAY_SOURCE", ".")).resolve()
ASSAY = str(BIN / "assay")
SLOWER = 20 if os.environ.get("ASSAY_SANITIZE") else 1  # than a release build, for the few limits of time

DEADLINE_S = 900 * SLOWER  # for what must happen on however busy a machine: only something that hangs reaches it
LONG_TESTS = os.environ.get("ASSAY_LONG_TESTS") == "1"

# A native case that is as small as one can be.
TINY_CASE = """model: tiny
target: {metric: accuracy, value: 0.9}
mutable: [Global.local_batch_size]
config:
  Global: {local_batch_size: 32}
  Model: {name: tiny, blocks: [1, 2, 3]}
  Data: {Train: {dataset: {name: idx_images}}}
  Optimizer: {name: SGD, lr: {name: constant, learning_rate: 0.1}}
"""


def long_test(test):
    """Marks a test method or class for the long set: skipped unless ASSAY_LONG_TESTS=1. tests/CMakeLists.txt adds an entry
    long/<file> for each file that uses this mark, and long_tests.py runs only the marked ones there."""
    test.is_long_test = True
    return test if LONG_TESTS else unittest.skip("long: run by script/test --long")(test)


class CliTest(unittest.TestCase):
    """Each test gets an empty folder, self.folder, in which `assay` runs."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="assay-test-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if k not in ("ASSAY_RUNS", "ASSAY_HOME", "ASSAY_DATA", "NO_COLOR")}
        env["ASSAY_HOME"] = str(SOURCE)
        env.update(more)
        return env

    def assay(self, *arguments, expect=0, timeout=600, **env):
        """Runs assay; checks its exit code (None: any); returns the finished process, output as text."""
        done = subprocess.run([ASSAY, *map(str, arguments)], cwd=self.folder, env=self.environment(**env),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
        if expect is not None:
            self.assertEqual(done.returncode, expect, f"{arguments}\n--- out\n{done.stdout}\n--- err\n{done.stderr}")
        return done

    def start(self, *arguments, **env):
        """Starts assay in the background."""
        process = subprocess.Popen([ASSAY, *map(str, arguments)], cwd=self.folder, env=self.environment(**env),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def runs(self):
        folder = self.folder / "runs"
        return sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")) if folder.exists() else []


def json_lines(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]


def processes_with(text):
    """Live processes whose environment mentions the text: what a run left behind."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if text.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            pass
    return found
