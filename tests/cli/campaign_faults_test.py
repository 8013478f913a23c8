"""Campaigns when things break: the controller killed at every line of its journal, a network that is cut, a disk that is full.
Nothing is lost, nothing is left running, and every result is right or marked."""
import json
import os
import re
import signal
import subprocess
import time
import unittest

import hosts_test
import ssh_support
from campaign_support import CampaignTest
from support import ASSAY, SLOWER

KILL_AT_JOURNAL = os.environ.get("ASSAY_KILL_AT_JOURNAL", "")


class FaultTest(CampaignTest):
    def steps_in_log(self, step, run=None):
        text = ((run or self.last_run()) / "steps" / step / "rank0.log").read_text()
        return [int(number) for number in re.findall(r"^step ([0-9]+) ", text, re.M)]

    def check_whole(self, run):
        """Every round has its result, too."""
        super().check_whole(run)
        results = json.loads(self.assay("report", run.name, "--json").stdout)["results"]
        self.assertEqual([result["final_accuracy"] for result in results], [0.91, 0.91])


class KilledControllerTest(FaultTest):
    """kill -9 right after each line of the journal is written, whichever transition that is."""

    def kill_everywhere(self, **where):
        vendor = self.home / "vendors/fake"
        (vendor / "setup").write_text("#!/bin/sh\necho prepared\n")
        (vendor / "setup").chmod(0o755)
        self.write({"quick:pytorch:chip:1:1:2": {"set": {"count": 3}}}, lease=15, **where)
        self.assay("run", "campaign.yaml")
        num_lines = len(self.journal())
        self.assertGreaterEqual(num_lines, 10)  # begin, end, and both of setup, two rounds and the judgement
        for line in range(1, num_lines + 1):
            with self.subTest(line=line):
                known = set(self.runs())
                killed = self.assay("run", "campaign.yaml", expect=None, LD_PRELOAD=KILL_AT_JOURNAL, ASSAY_TEST_KILL_AT=str(line))
                self.assertEqual(killed.returncode, -signal.SIGKILL, killed.stderr)
                new = set(self.runs()) - known
                if not new:  # a folder appears under its name when its first line is written
                    self.assertEqual(line, 1)
                    continue
                run = new.pop()
                self.assertEqual(len(self.journal(run)), line)
                self.assay("resume", run.name)
                self.check_whole(run)

    def test_survives_kills_on_this_machine(self):
        self.kill_everywhere()

    def test_survives_kills_over_ssh(self):
        if ssh_support.missing():
            self.skipTest(ssh_support.missing())
        ssh = ssh_support.SshHosts(self.folder / "ssh", 1)
        self.addCleanup(ssh.close)
        self.kill_everywhere(launcher="ssh", hosts=[{**ssh.hosts[0], "slots": 1}])


class CutNetworkTest(FaultTest):
    """Two hosts with a network of their own; the operator sits at the first."""

    def setUp(self):
        super().setUp()
        reason = ssh_support.missing() or hosts_test.missing()
        if reason:
            self.skipTest(reason)
        self.network = hosts_test.Hosts()
        self.addCleanup(self.network.remove)
        self.ssh = ssh_support.SshHosts(self.folder / "ssh", 2, addresses=self.network.addresses, enter=self.network.command)
        self.addCleanup(self.ssh.close)

    def start_campaign(self, **more):
        self.write({"quick:pytorch:chip:2:1:1": {"set": {"count": 200}}}, retries=0, launcher="ssh", hosts=self.ssh.hosts, **more)
        process = subprocess.Popen(self.network.command(0, [ASSAY, "run", "campaign.yaml"]), cwd=self.folder,
                                   env=self.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        self.wait_for_log("step 5 ", 60)
        return process

    def test_reports_a_link_that_stays_cut(self):
        process = self.start_campaign(lease=5)
        self.network.cut()
        self.assertEqual(process.wait(60 * SLOWER), 4)
        end = self.ends()["quick-pytorch-chip-2x1"]
        self.assertEqual((end["outcome"], end["infrastructure"]), ("Error", True))
        self.assertIn("node2", end["reason"])
        self.assert_nothing_runs(seconds=30)  # also behind the cut, where the lease has ended

    def test_survives_a_link_that_comes_back(self):
        process = self.start_campaign(lease=60)
        self.network.cut()
        time.sleep(4)  # longer than ssh waits for an answer
        self.network.ip("-n", self.network.switch, "link", "set", "port1", "up")
        self.assertEqual(process.wait(120 * SLOWER), 0, process.communicate())
        self.assertEqual(self.steps_in_log("1-quick-pytorch-chip-2x1"), list(range(1, 201)))
        self.assertIn("rank 1 of 2", (self.last_run() / "steps/1-quick-pytorch-chip-2x1/rank1.log").read_text())
        self.assert_nothing_runs()


class FullDiskTest(FaultTest):
    """The runs are on a disk of their own, which has just what the checks before a run ask for."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("a disk of its own needs root, for mount")
        self.disk = self.folder / "runs"
        self.disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1200m", "full-disk", self.disk], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk], check=False)

    def fill(self):
        with open(self.disk / ".ballast", "wb") as file:
            size, piece = 0, 1 << 24
            while piece >= 4096:  # all there is, to the last page
                try:
                    os.posix_fallocate(file.fileno(), size, piece)
                    size += piece
                except OSError:
                    piece //= 2

    def test_resumes_after_a_full_disk_is_freed(self):
        self.write({"quick:pytorch:chip:1:1:2": {"set": {"count": 40}}}, lease=15, monitor={"interval": 0})
        process = self.start("run", "campaign.yaml")
        self.wait_for_log("step 5 ")
        self.fill()
        out, err = process.communicate(timeout=90 * SLOWER)
        self.assertEqual(process.returncode, 4, out + err)
        self.assertRegex(out + err, "No space left")
        run = self.last_run()
        self.assert_nothing_runs(run, seconds=30)
        (self.disk / ".ballast").unlink()
        self.assay("resume", run.name, "--retry-failed")
        ends = self.ends(run)
        self.assertEqual({end["outcome"] for end in ends.values()}, {"Pass"})
        results = json.loads(self.assay("report", run.name, "--json").stdout)["results"]
        self.assertEqual([result["final_accuracy"] for result in results], [0.91, 0.91])

    def test_explains_a_disk_that_is_full_from_the_start(self):
        self.write({"quick:pytorch:chip:1:1:1": None})
        self.fill()
        done = self.assay("run", "campaign.yaml", expect=4)
        self.assertRegex(done.stderr, "(?i)space|disk")


if __name__ == "__main__":
    unittest.main()
