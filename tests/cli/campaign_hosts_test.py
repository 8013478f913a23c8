"""Campaigns over hosts: the same one by ssh (real sshd) and by a real Slurm, with native and Python cases; and hosts that fail."""
import json
import os
import re
import subprocess
import sys
import time
import unittest

import hosts_test
import slurm_support
import ssh_support
from campaign_support import CampaignTest
from support import ASSAY

SKIPPED = 77  # what tests/CMakeLists.txt has ctest show as a skip
FASHION = "/usr/share/datasets/fashion-mnist"


class SshTest(CampaignTest):
    def setUp(self):
        super().setUp()
        self.ssh = ssh_support.SshHosts(self.folder / "ssh", 2)
        self.addCleanup(self.ssh.close)
        self.hosts = {"launcher": "ssh", "hosts": [{**host, "slots": 2} for host in self.ssh.hosts]}

    def test_ranks_run_on_both_hosts(self):
        self.write({"quick:pytorch:chip:2:2:1": None, "quick:pytorch:chip:1:1:2": None}, concurrency=2, **self.hosts)
        self.assay("run", "campaign.yaml")
        step = self.last_run() / "steps/1-quick-pytorch-chip-2x2"
        self.assertIn("rank 3 of 4", (step / "rank3.log").read_text())
        self.assertTrue((step / "monitor.node1.jsonl").exists())
        self.assertEqual(set(end["outcome"] for end in self.ends().values()), {"Pass"})
        self.assert_nothing_runs()

    def test_a_rank_that_fails_on_the_other_host(self):
        self.write({"quick:pytorch:chip:2:1:1": {"set": {"what": "fail", "count": 1000}}}, **self.hosts)
        self.assay("run", "campaign.yaml", expect=1)
        self.assertEqual(self.ends()["quick-pytorch-chip-2x1"]["reason"], "node2, rank 1: exit code 7: it broke")
        self.assert_nothing_runs()

    def test_what_is_in_the_way_is_told_at_once(self):
        self.ssh.stop(1)
        known = self.ssh.known_hosts.read_text()
        self.ssh.known_hosts.write_text(known.split("\n")[1] + "\n")
        self.write({"quick:pytorch:chip:2:1:1": None}, **self.hosts)
        begin = time.time()
        done = self.assay("run", "campaign.yaml", expect=4)
        self.assertLess(time.time() - begin, 30)
        self.assertRegex(done.stderr, "(?s)node1: .*key.*node2: ")
        self.assertEqual(self.runs(), [])

    def test_a_host_that_is_gone_in_the_middle(self):
        self.write({"quick:pytorch:chip:2:1:1": {"set": {"count": 1000}}}, retries=0, **self.hosts)
        process = self.start("run", "campaign.yaml")
        self.wait_for_log("step 5 ")
        self.ssh.stop(1)
        self.assertEqual(process.wait(40), 4)
        self.assertIn("node2", self.ends()["quick-pytorch-chip-2x1"]["reason"])
        self.assert_nothing_runs(seconds=20)

    def test_a_connection_that_comes_back(self):
        self.write({"quick:pytorch:chip:2:1:1": {"set": {"count": 80}}}, retries=0, lease=30, **self.hosts)
        process = self.start("run", "campaign.yaml")
        self.wait_for_log("step 5 ")
        self.ssh.cut(0)
        self.assertEqual(process.wait(60), 0)
        steps = re.findall(r"^step ([0-9]+) ", (self.last_run() / "steps/1-quick-pytorch-chip-2x1/rank0.log").read_text(), re.M)
        self.assertEqual([int(s) for s in steps], list(range(1, 81)))

    def test_a_killed_controller_is_replaced(self):
        self.write({"quick:pytorch:chip:2:1:1": {"set": {"count": 100}}}, lease=30, **self.hosts)
        process = self.start("run", "campaign.yaml")
        self.wait_for_log("step 5 ")
        process.kill()
        process.wait()
        self.assertIn("going on with it", self.assay("resume", "last").stderr)
        steps = re.findall(r"^step ([0-9]+) ", (self.last_run() / "steps/1-quick-pytorch-chip-2x1/rank0.log").read_text(), re.M)
        self.assertEqual([int(s) for s in steps], list(range(1, 101)))
        self.assert_nothing_runs()


class SameEverywhereTest(CampaignTest):
    conf = ""

    def environment(self, **more):
        return {**super().environment(), "SLURM_CONF": str(self.conf), **more}

    def run_campaign(self, name, enter=lambda words: words, **where):
        source = os.environ.get("ASSAY_SOURCE", ".")
        (self.folder / f"{name}.yaml").write_text(json.dumps({
            "campaign": name, "vendor": "cpu", "division": "open", **where, "cases": {
                "fashion_ddp:pytorch:cpu:2:1:1": {"data": FASHION, "set": {"steps": 60}},
                "simplenet:libtorch:cpu:2:1:1": {"data": FASHION, "set": {"Engine.max_steps": 20}}}}))
        done = subprocess.run(enter([ASSAY, "run", f"{name}.yaml"]), cwd=self.folder, stdin=subprocess.DEVNULL,
                              env=self.environment(ASSAY_HOME=source), capture_output=True, text=True, timeout=180)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        table = self.assay("table", "last", ASSAY_HOME=source).stdout
        # config and accuracy: what must be the same wherever it runs; times are not.
        return [[row.split("|")[1].strip(), row.split("|")[8].strip()] for row in table.splitlines() if ":cpu:" in row]

    def two_hosts(self):
        """Hosts with a network of their own where that can be made, the first of them the operator's; loopback addresses elsewhere."""
        if hosts_test.missing():
            hosts = ssh_support.SshHosts(self.folder / "ssh", 2)
            self.addCleanup(hosts.close)
            return hosts.hosts, lambda words: words
        network = hosts_test.Hosts()
        self.addCleanup(network.remove)
        hosts = ssh_support.SshHosts(self.folder / "ssh", 2, addresses=network.addresses, enter=network.command)
        self.addCleanup(hosts.close)
        return hosts.hosts, lambda words: network.command(0, words)

    def test_the_tables_of_ssh_and_of_slurm_agree(self):
        hosts, enter = self.two_hosts()
        # Gloo of PyTorch asks for the address of a host's name, which these do not have.
        network = {} if hosts_test.missing() else {"environment": {"GLOO_SOCKET_IFNAME": "eth0"}}
        by_ssh = self.run_campaign("by-ssh", enter, launcher="ssh", hosts=hosts, **network)
        cluster = slurm_support.SlurmCluster(self.folder / "slurm")
        self.addCleanup(cluster.stop)
        self.conf = cluster.environment["SLURM_CONF"]
        by_slurm = self.run_campaign("by-slurm", launcher="slurm", slurm={"partition": "p"})
        self.assertEqual(len(by_ssh), 2)
        self.assertEqual(by_ssh, by_slurm)


if __name__ == "__main__":
    reason = ssh_support.missing() or slurm_support.missing()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    unittest.main()
