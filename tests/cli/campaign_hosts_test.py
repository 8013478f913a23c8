"""Campaigns over hosts: the same one by ssh (real sshd) and by a real Slurm, with native and Python cases; and hosts that fail."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import hosts_test
import slurm_support
import ssh_support
from campaign_support import CASE, CampaignTest
from support import ASSAY, BIN, SOURCE, json_lines

SKIPPED = 77  # what tests/CMakeLists.txt has ctest show as a skip
FASHION = "/usr/share/datasets/fashion-mnist"


class SshTest(CampaignTest):
    def setUp(self):
        super().setUp()
        self.ssh = ssh_support.SshHosts(self.folder / "ssh", 2)
        self.addCleanup(self.ssh.close)
        self.hosts = {"launcher": "ssh", "hosts": [{**host, "slots": 2} for host in self.ssh.hosts]}

    def test_runs_ranks_on_both_hosts(self):
        self.write({"quick:pytorch:chip:2:2:1": None, "quick:pytorch:chip:1:1:2": None}, concurrency=2, **self.hosts)
        self.assay("run", "campaign.yaml")
        step = self.last_run() / "steps/1-quick-pytorch-chip-2x2"
        self.assertIn("rank 3 of 4", (step / "rank3.log").read_text())
        self.assertTrue((step / "monitor.node1.jsonl").exists())
        self.assertEqual(set(end["outcome"] for end in self.ends().values()), {"Pass"})
        self.assert_nothing_runs()

    def test_uses_the_home_folder_without_a_work_folder(self):
        homes = [self.folder / f"login{i}" for i in (0, 1)]
        for i, home in enumerate(homes):
            home.mkdir()
            self.ssh.variables[i] = {"HOME": home}
            self.ssh.stop(i)
            self.ssh.start(i)
        hosts = [{key: value for key, value in host.items() if key != "work_dir"} for host in self.ssh.hosts]
        self.write({"quick:pytorch:chip:2:1:1": None}, launcher="ssh", hosts=hosts)
        self.assay("run", "campaign.yaml")
        for home in homes:
            self.assertTrue((home / ".assay" / self.last_run().name).is_dir())

    def test_runs_setup_once_on_every_host(self):
        setup = self.home / "vendors/fake/setup"
        setup.write_text("#!/bin/sh\necho rank $RANK >> ../setup.log\n")  # beside the run folder there
        setup.chmod(0o755)
        self.write({"quick:pytorch:chip:2:2:2": None, "quick:pytorch:chip:1:1:1": None}, **self.hosts)
        self.assay("run", "campaign.yaml")
        for i, host in enumerate(self.ssh.hosts):
            self.assertEqual((pathlib.Path(host["work_dir"]) / "setup.log").read_text(), f"rank {i}\n")

    def test_runs_a_corrected_case(self):
        self.check_put_right(**self.hosts)

    def test_names_a_failing_rank_of_the_other_host(self):
        self.write({"quick:pytorch:chip:2:1:1": {"set": {"what": "fail", "count": 1000}}}, **self.hosts)
        self.assay("run", "campaign.yaml", expect=1)
        self.assertEqual(self.ends()["quick-pytorch-chip-2x1"]["reason"], "node2, rank 1: exit code 7: it broke")
        self.assert_nothing_runs()

    def test_reports_all_preflight_problems_at_once(self):
        self.ssh.stop(1)
        known = self.ssh.known_hosts.read_text()
        self.ssh.known_hosts.write_text(known.split("\n")[1] + "\n")
        self.write({"quick:pytorch:chip:2:1:1": None}, **self.hosts)
        done = self.assay("run", "campaign.yaml", expect=4)
        self.assertRegex(done.stderr, "(?s)node1: .*key.*node2: ")
        self.assertEqual(self.runs(), [])

    def test_survives_a_host_lost_in_the_middle(self):
        self.write({"quick:pytorch:chip:2:1:1": {"set": {"count": 100000}}}, retries=0, lease=8, **self.hosts)
        process = self.start("run", "campaign.yaml")
        self.wait_for_log("step 5 ")
        self.ssh.stop(1)
        self.assertEqual(process.wait(120), 4)
        self.assertIn("node2", self.ends()["quick-pytorch-chip-2x1"]["reason"])
        self.assert_nothing_runs()

    def test_survives_a_connection_that_comes_back(self):
        self.write({"quick:pytorch:chip:2:1:1": {"set": {"count": 80}}}, retries=0, lease=60, **self.hosts)
        process = self.start("run", "campaign.yaml")
        self.wait_for_log("step 5 ")
        self.ssh.cut(0)
        self.assertEqual(process.wait(120), 0)
        steps = re.findall(r"^step ([0-9]+) ", (self.last_run() / "steps/1-quick-pytorch-chip-2x1/rank0.log").read_text(), re.M)
        self.assertEqual([int(s) for s in steps], list(range(1, 81)))

    def test_reattaches_after_a_killed_controller(self):
        self.write({"quick:pytorch:chip:2:1:1": {"set": {"count": 100}}}, lease=60, **self.hosts)
        process = self.start("run", "campaign.yaml")
        self.wait_for_log("step 5 ")
        process.kill()
        process.wait()
        self.assertIn("going on with it", self.assay("resume", "last").stderr)
        steps = re.findall(r"^step ([0-9]+) ", (self.last_run() / "steps/1-quick-pytorch-chip-2x1/rank0.log").read_text(), re.M)
        self.assertEqual([int(s) for s in steps], list(range(1, 101)))
        self.assert_nothing_runs()


    def test_checks_hosts_on_resume_while_a_step_runs(self):
        gate, data = self.folder / "gate", self.folder / "data"
        data.mkdir()
        self.write({"quick:pytorch:chip:2:1:1": {"set": {"what": "gate"}}, "quick:pytorch:chip:2:2:1": {"data": str(data)}},
                   lease=60, environment={"GATE": str(gate)}, **self.hosts)
        process = self.start("run", "campaign.yaml")
        self.wait_for_log("step 2 ")
        process.kill()
        process.wait()
        data.rmdir()
        said = self.assay("resume", "last", expect=4).stderr  # of both hosts, and of no lock
        self.assertIn("nothing was started, preflight found 2 problems", said)
        for node in "node1", "node2":
            self.assertIn(f"{node}: data {data}: does not exist", said)
        data.mkdir()
        process = self.start("resume", "last")  # within the lease
        self.assertIn("going on with it", process.stderr.readline())
        gate.touch()
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, out + err)
        self.check_whole(self.last_run())
        status = json.loads((self.last_run() / "steps/1-quick-pytorch-chip-2x1/status.json").read_text())
        self.assertEqual(status["attempt"], 1, "what ran was left in peace by the resume that failed")


@unittest.skipIf(hosts_test.missing(), f"hosts with files of their own: {hosts_test.missing()}")
class OwnFilesTest(CampaignTest):
    """Hosts that do not see what this machine has: mount namespaces around their sshd."""

    def start_hosts(self, count, enter):
        self.ssh = ssh_support.SshHosts(self.folder / "ssh", count, enter=enter)
        self.addCleanup(self.ssh.close)
        return {"launcher": "ssh", "hosts": [{**host, "slots": 2} for host in self.ssh.hosts]}

    def sees(self, i, path):
        return subprocess.run(self.ssh.ssh(i) + [f"test -e '{path}'"], stdin=subprocess.DEVNULL, timeout=60).returncode == 0

    def test_gives_mindspore_the_device_addresses(self):
        folder = self.home / "cases/table"
        folder.mkdir()
        (folder / "run.py").write_text("import json, os\nprint('table', json.dumps(json.load(open(os.environ['RANK_TABLE_FILE']))))\n"
                                       "print('accuracy 0.91')\n")
        case = CASE.replace("model: quick", "model: table").replace("framework: pytorch", "framework: mindspore")
        (folder / "case.yaml").write_text(case)
        (self.home / "vendors/fake/table").mkdir()
        (self.home / "vendors/fake/table/config_chipx2x2.yaml").write_text("# as it is\n")
        for i in 0, 1:  # the second has no such file
            subprocess.run(["cp", "-a", "/etc", self.folder / f"etc{i}"], check=True)
            (self.folder / f"etc{i}/hccn.conf").unlink(missing_ok=True)
        (self.folder / "etc0/hccn.conf").write_text(
            "address_0=192.168.100.101\nnetmask_0=255.255.255.0\naddress_1=192.168.101.101\nno line of it\naddress_2=x\n")
        hosts = self.start_hosts(2, lambda i, words: ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc && exec "$@"',
                                                      str(self.folder / f"etc{i}"), *words])
        self.assertEqual((self.sees(0, "/etc/hccn.conf"), self.sees(1, "/etc/hccn.conf")), (True, False))
        self.write({"table:mindspore:chip:2:2:1": None}, **hosts)
        self.assay("run", "campaign.yaml")
        step = self.last_run() / "steps/1-table-mindspore-chip-2x2"
        tables = []
        for rank in range(4):
            line = next(line for line in (step / f"rank{rank}.log").read_text().splitlines() if line.startswith("table "))
            tables.append(json.loads(line.removeprefix("table ")))
        self.assertEqual(tables, [tables[0]] * 4)
        addresses = [[device["device_ip"] for device in server["device"]] for server in tables[0]["server_list"]]
        self.assertEqual(addresses, [["192.168.100.101", "192.168.101.101"], [self.ssh.hosts[1]["address"]] * 2])
        log = (step / "supervisor.node0.log").read_text()
        self.assertIn("/etc/hccn.conf:4: 'no line of it' is not KEY=VALUE", log)
        self.assertIn("/etc/hccn.conf:5: 'address_2=x' has no address", log)
        self.assertNotIn("hccn.conf", (step / "supervisor.node1.log").read_text())

    def test_sends_a_plugin_that_only_this_machine_has(self):
        library = self.folder / "lib/own.so"
        library.parent.mkdir()
        shutil.copy(BIN / "plugins/reference.so", library)
        hosts = self.start_hosts(1, lambda i, words: ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"',
                                                      str(library.parent), *words])
        self.assertFalse(self.sees(0, library))
        (self.folder / "campaign.yaml").write_text(json.dumps({
            "campaign": "plugin", "vendor": "cpu", "division": "open", **hosts, "cases": {
                "simplenet:libtorch:cpu:1:1:1": {"data": FASHION, "set": {"Engine.max_steps": 4, "Global.plugin": str(library),
                                                                          "Global.device": "reference"}}}}))
        self.assay("run", "campaign.yaml", ASSAY_HOME=str(SOURCE))
        run = self.last_run()
        there = pathlib.Path(self.ssh.hosts[0]["work_dir"]) / run.name / "code/plugin-1/own.so"
        for copy in run / "code/plugin-1/own.so", there:
            self.assertEqual(copy.read_bytes(), library.read_bytes())
        records = json_lines(run / "steps/1-simplenet-libtorch-cpu-1x1/records.jsonl")
        named = [record["data"]["plugin"] for record in records if "plugin" in record.get("data", {})]
        self.assertEqual([(plugin["name"], pathlib.Path(plugin["library"])) for plugin in named], [("reference", there.resolve())])

    def test_names_a_plugin_that_nobody_has(self):
        hosts = self.start_hosts(1, None)
        (self.folder / "campaign.yaml").write_text(json.dumps({
            "vendor": "cpu", "division": "open", **hosts, "cases": {
                "simplenet:libtorch:cpu:1:1:1": {"data": FASHION, "set": {"Global.plugin": "/nowhere/own.so"}}}}))
        done = self.assay("run", "campaign.yaml", expect=4, ASSAY_HOME=str(SOURCE))
        self.assertIn("node1: /nowhere/own.so does not exist", done.stderr)
        self.assertEqual(self.runs(), [])


class OtherUserTest(CampaignTest):
    """Operators need not be root on the hosts: sshd of a host that has one user more."""
    uid = 54321

    @unittest.skipIf(hosts_test.missing(), f"a host with another user: {hosts_test.missing()}")
    def test_needs_no_root_on_the_hosts(self):
        self.folder.chmod(0o755)
        home = self.folder / "bench"
        passwd = self.folder / "passwd"
        passwd.write_text(pathlib.Path("/etc/passwd").read_text() + f"bench:x:{self.uid}:{self.uid}::{home}:/bin/sh\n")
        enter = lambda i, words: ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/passwd && exec "$@"', str(passwd), *words]
        for folder in home, self.folder / "ssh", self.folder / "ssh/locks0":
            folder.mkdir()
        for folder in home, self.folder / "ssh/locks0":
            os.chown(folder, self.uid, self.uid)
        hosts = ssh_support.SshHosts(self.folder / "ssh", 1, enter=enter)
        self.addCleanup(hosts.close)
        host = {**hosts.hosts[0], "user": "bench", "work_dir": "work"}
        self.write({"quick:pytorch:chip:1:2:1": None}, launcher="ssh", hosts=[host])
        self.assay("run", "campaign.yaml")
        mirror = home / "work" / self.last_run().name
        self.assertEqual({path.stat().st_uid for path in [mirror, *mirror.rglob("rank*.log")]}, {self.uid})
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
                              env=self.environment(ASSAY_HOME=source), capture_output=True, text=True, timeout=900)
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

    @unittest.skipIf(slurm_support.missing(), slurm_support.missing())
    def test_gives_the_same_tables_over_ssh_and_slurm(self):
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
        self.check_nodes_of_slurm()

    def check_nodes_of_slurm(self):
        """The nodes are looked at before a job is submitted."""
        for data, expect in (FASHION, 0), ("/nowhere", 4):
            (self.folder / "check.yaml").write_text(json.dumps({
                "vendor": "cpu", "division": "open", "launcher": "slurm", "slurm": {"partition": "p"},
                "cases": {"fashion_ddp:pytorch:cpu:2:1:1": {"data": data}}}))
            done = self.assay("run", "check.yaml", "--check", expect=expect, ASSAY_HOME=os.environ.get("ASSAY_SOURCE", "."))
            self.assertNotIn("not looked at", done.stderr)
            if expect:
                self.assertRegex(done.stderr, "(?s)n1: .*/nowhere.*n2: .*/nowhere")


if __name__ == "__main__":
    if ssh_support.missing():
        print(f"skipped: {ssh_support.missing()}")
        sys.exit(SKIPPED)
    unittest.main()
