"""What goes to far hosts and what comes back of them: data that a campaign stages, and the environment that results have."""
import json
import os
import pathlib
import shutil
import sqlite3
import sys
import unittest

import ssh_support
from campaign_support import CASE, CampaignTest

SKIPPED = 77  # what tests/CMakeLists.txt has ctest show as a skip

READER = """import os, pathlib, sys
folder = pathlib.Path(sys.argv[1])
assert os.environ["ASSAY_CASE_DATA"] == str(folder), folder
print("accuracy", (folder / "train/value.txt").read_text(), flush=True)
print("read", folder.resolve(), flush=True)
"""


class FarHostsTest(CampaignTest):
    def setUp(self):
        super().setUp()
        self.ssh = ssh_support.SshHosts(self.folder / "ssh", 2)
        self.addCleanup(self.ssh.close)
        self.hosts = {"launcher": "ssh", "hosts": [{**host, "slots": 1} for host in self.ssh.hosts]}
        self.data = self.folder / "data"
        (self.data / "train").mkdir(parents=True)
        (self.data / "train/value.txt").write_text("0.95")

    def use_reader(self):
        case = self.home / "cases/quick"
        (case / "run.py").write_text(READER)
        (case / "case.yaml").write_text(CASE.replace('"{what}", "{count}"', '"{data}"'))

    def staged(self, node):
        folder = pathlib.Path(self.ssh.hosts[node]["work_dir"]) / "data"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def run_staged(self, expect=0):
        self.write({"quick:pytorch:chip:2:1:1": {"data": str(self.data), "stage": True}}, **self.hosts)
        return self.assay("run", "campaign.yaml", expect=expect)

    def test_copies_data_once_and_uses_it_in_place(self):
        self.use_reader()
        self.assertIn("copied to 2 and checked", self.run_staged().stderr)
        self.assertEqual(len(self.staged(0)), 1)
        self.assertEqual(self.staged(0), self.staged(1))
        for node in 0, 1:
            log = (self.last_run() / f"steps/1-quick-pytorch-chip-2x1/rank{node}.log").read_text()
            self.assertIn(self.ssh.hosts[node]["work_dir"] + "/data/" + self.staged(node)[0], log)
        self.assertIn("all have it", self.run_staged().stderr)
        (self.data / "train/value.txt").write_text("0.97")
        self.assertIn("copied to 2 and checked", self.run_staged().stderr)
        self.assertEqual(len(self.staged(0)), 2)
        results = json.loads(self.assay("report", "last", "--json").stdout)["results"]
        self.assertEqual(results[0]["final_accuracy"], 0.97)

    def test_rejects_data_that_changed_before_a_resume(self):
        self.use_reader()
        (self.data / "train/value.txt").write_text("0.5")
        self.run_staged(expect=1)  # below the target
        for host in self.ssh.hosts:
            shutil.rmtree(pathlib.Path(host["work_dir"]) / "data")
        (self.data / "train/value.txt").write_text("0.99")
        done = self.assay("resume", "last", "--retry-failed", expect=2)
        self.assertIn("changed since the run was planned", done.stderr)
        self.assertEqual(self.staged(0) + self.staged(1), [])

    def test_sends_no_wrong_data(self):
        self.use_reader()
        case = self.home / "cases/quick/case.yaml"
        case.write_text(case.read_text().replace("layout: none}", "layout: none, sha256: {train/value.txt: " + "a" * 64 + "}}"))
        done = self.run_staged(expect=2)
        self.assertRegex(done.stderr, r"campaign.yaml:[0-9]+: stage: .*train/value.txt is not the file that the case names")
        self.data = self.folder / "nowhere"
        self.assertRegex(self.run_staged(expect=2).stderr, r"campaign.yaml:[0-9]+: stage: .*nowhere")
        self.assertEqual(self.runs(), [])
        self.write({"quick:pytorch:chip:2:1:1": {"data": str(self.data), "stage": "yes please"}}, **self.hosts)
        self.assertRegex(self.assay("run", "campaign.yaml", expect=2).stderr, "campaign.yaml:[0-9]+: stage: must be true or false")

    def test_requires_versions(self):
        case = self.home / "cases/quick/case.yaml"
        case.write_text(case.read_text() + "  versions: {engine: [no-such-program, --version]}\n")
        self.write({"quick:pytorch:chip:2:1:1": None}, **self.hosts)
        self.assertRegex(self.assay("run", "campaign.yaml", expect=4).stderr, "(?s)node1: .*engine.*node2: .*engine")
        case.write_text(CASE + "  versions: {engine: no list}\n")
        self.assertRegex(self.assay("run", "campaign.yaml", expect=2).stderr, "case.yaml: config.versions")

    def test_shows_the_origin_of_results(self):
        case = self.home / "cases/quick/case.yaml"
        case.write_text(case.read_text() + "  versions: {python: [python3, --version]}\n")
        self.write({"quick:pytorch:chip:2:1:1": None}, **self.hosts)
        self.assay("run", "campaign.yaml")
        with sqlite3.connect(self.folder / "runs/results.sqlite") as store:
            (hosts, hashes, text), = store.execute("SELECT hosts, hashes, environments.environment FROM results JOIN environments "
                                                   "ON results.environment = environments.hash").fetchall()
        self.assertEqual(json.loads(hosts), ["node1", "node2"])
        self.assertEqual(len(json.loads(hashes)["code"]), 64)
        environment = json.loads(text)
        self.assertRegex(environment["versions"]["python"], "^Python 3")
        for one in environment, environment["hosts"]["node1"], environment["hosts"]["node2"]:
            self.assertEqual(one["host"]["kernel"], os.uname().release)
            self.assertIn("addresses", one["host"])
            self.assertIn("drivers", one)
            self.assertIn("glibc", one["libraries"])
            self.assertEqual(len(one["assay"]["program_sha256"]), 64)
            self.assertEqual(one["used_devices"], {"hardware": "chip", "indices": [0]})


if __name__ == "__main__":
    reason = ssh_support.missing()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    unittest.main()
