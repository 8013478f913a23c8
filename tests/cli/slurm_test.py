"""The Slurm launcher against a real Slurm: two nodes, on this machine."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

import slurm_support
from campaign_support import CampaignTest
from support import BIN, SLOWER, CliTest, json_lines, processes_with

SKIPPED = 77  # what tests/CMakeLists.txt has ctest show as a skip
DRIVER = str(BIN / "assay_launch_driver")


class Slurm(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = slurm_support.cluster_of(cls)

    def setUp(self):
        super().setUp()
        self.step = self.folder / "steps/1-train"
        self.step.mkdir(parents=True)
        self.run_id = f"slurm-test-{os.getpid()}-{time.monotonic_ns()}"
        self.addCleanup(self.nothing_is_left)

    def nothing_is_left(self):
        self.cluster.command("scancel", "--partition=p", check=False)
        deadline = time.monotonic() + 15
        while processes_with(f"ASSAY_TREE={self.run_id}/") and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(processes_with(f"ASSAY_TREE={self.run_id}/"), [])

    def request(self, script, **more):
        value = {"argv": ["/bin/sh", "-c", script], "cwd": str(self.folder), "folder": str(self.step), "nproc": 2, "nnodes": 2,
                 "run_id": self.run_id, "tree_mark": f"{self.run_id}/train", **more}
        path = self.folder / "request.json"
        path.write_text(json.dumps(value))
        return path

    def drive(self, verb, request):
        process = subprocess.Popen([DRIVER, verb, str(request)], env=self.environment(**self.cluster.environment),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        return process

    def finish(self, process, timeout=60):
        out, err = process.communicate(timeout=timeout * SLOWER)
        self.assertEqual(err, "")
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertTrue(lines, "the driver said nothing")
        return lines

    def run_step(self, script, verb="start", **more):
        return self.finish(self.drive(verb, self.request(script, **more)))[-1]

    def wait_until(self, condition, what, seconds=30):
        deadline = time.monotonic() + seconds * SLOWER
        while not condition():
            if time.monotonic() > deadline:
                logs = {path.name: path.read_text(errors="replace") for path in self.step.glob("*") if path.is_file()}
                self.fail(f"{what} did not come: {logs}")
            time.sleep(0.05)

    def wait_for_logs(self, ranks=4):
        self.wait_until(lambda: all((self.step / f"rank{r}.log").exists() and (self.step / f"rank{r}.log").read_text()
                                    for r in range(ranks)), "a line of every rank")

    def job_id(self):
        return json.loads((self.step / "slurm.json").read_text())["job_id"]

    def codes(self, result):
        return [rank.get("code") for rank in result["ranks"]]

    def test_gives_every_rank_its_place_and_exit_code(self):
        last = self.run_step('echo "$RANK $WORLD_SIZE $LOCAL_RANK $NODE_RANK $MASTER_ADDR $MASTER_PORT"; '
                             'echo "{}" >> "$ASSAY_RECORDS"')
        result = last["result"]
        self.assertEqual(result["infrastructure"], "")
        self.assertEqual(self.codes(result), [0, 0, 0, 0])
        words = [(self.step / f"rank{rank}.log").read_text().split() for rank in range(4)]
        for rank, found in enumerate(words):
            self.assertEqual(found[:5], [str(rank), "4", str(rank % 2), str(rank // 2), "127.0.0.1"])
        self.assertEqual(len({found[5] for found in words}), 1, "all know the same port")
        self.assertTrue((self.step / "records.rank3.jsonl").exists())
        nodes = json.loads((self.step / "slurm.nodes.json").read_text())
        self.assertEqual([node["name"] for node in nodes], ["n1", "n2"])
        self.assertEqual(json.loads((self.step / "slurm.json").read_text())["state"], "ended")

    def test_watches_every_node(self):
        self.run_step("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done", monitor_interval_s=0.1)
        for node in 0, 1:
            samples = json_lines(self.step / f"monitor.node{node}.jsonl")
            self.assertGreaterEqual(len(samples), 1)
            self.assertGreater(max(sample["cpu_own"] for sample in samples), 0.05)
            self.assertIsNone(samples[-1]["devices"])

    def test_stops_the_others_at_a_failing_rank(self):
        begin = time.monotonic()
        result = self.run_step('echo begin; if [ $RANK = 3 ]; then echo broken; exit 7; fi; exec sleep 600')["result"]
        self.assertEqual((result["status"]["code"], result["deciding_rank"]), (7, 3))
        self.assertTrue(result["failed_by_itself"])
        self.assertEqual(result["infrastructure"], "")
        self.assertEqual(result["ranks"][3]["code"], 7)
        self.assertEqual([rank["signal"] for rank in result["ranks"][:3]], [15, 15, 15])
        self.assertLess(time.monotonic() - begin, 30 * SLOWER)

    def test_finds_the_cause_of_a_lost_connection(self):
        # Rank 0 only says that it lost the others (13), and its node ends after 3 s of looking for the cause; rank 3, on the
        # other node, is why, and says so only then.
        result = self.run_step('[ $RANK = 0 ] && exit 13; state=${ASSAY_RECORDS%/*}/state.node0.json; [ $RANK = 3 ] && { until grep -q '
                               '\'"state": *"ended"\' $state; do sleep 0.05; done; exit 9; }; exec sleep 600')["result"]
        self.assertEqual((result["status"]["code"], result["deciding_rank"]), (9, 3))

    def test_shows_the_signal_of_a_killed_rank(self):
        result = self.run_step('[ $RANK = 1 ] && kill -9 $$; exec sleep 600')["result"]
        self.assertEqual((result["status"]["signal"], result["deciding_rank"]), (9, 1))
        self.assertTrue(result["failed_by_itself"])
        self.assertEqual(result["infrastructure"], "")

    def test_blames_the_infrastructure_for_a_foreign_scancel(self):
        process = self.drive("start", self.request("echo begin; exec sleep 600"))
        self.wait_for_logs()
        self.cluster.command("scancel", self.job_id())
        result = self.finish(process)[-1]["result"]
        self.assertIn("cancelled from outside (CANCELLED)", result["infrastructure"])
        self.assertIn(self.job_id(), result["infrastructure"])
        self.assertEqual(process.returncode, 4)

    def test_blames_the_infrastructure_for_a_failing_node(self):
        process = self.drive("start", self.request("echo begin; exec sleep 600"))
        self.wait_for_logs()
        self.cluster.command("scontrol", "update", "nodename=n2", "state=down", "reason=test")
        self.addCleanup(self.cluster.wait_for, lambda: self.cluster.idle_nodes() == 2, "both nodes idle")
        self.addCleanup(self.cluster.command, "scontrol", "update", "nodename=n2", "state=resume", check=False)  # if need be
        result = self.finish(process)[-1]["result"]
        self.assertIn("NODE_FAIL", result["infrastructure"])
        self.assertEqual(process.returncode, 4)

    def test_finishes_ranks_without_the_daemon_of_their_node(self):
        gate = self.folder / "gate"
        process = self.drive("start", self.request(f"echo begin; while [ ! -e '{gate}' ]; do sleep 0.1; done"))
        self.wait_for_logs()
        self.cluster.kill_node("n2")
        self.addCleanup(self.cluster.wait_for, lambda: self.cluster.idle_nodes() == 2, "both nodes idle", 60)
        self.addCleanup(self.cluster.start_node, "n2")
        gate.touch()
        result = self.finish(process)[-1]["result"]
        self.assertEqual((self.codes(result), result["infrastructure"]), ([0, 0, 0, 0], ""))

    def test_ends_every_rank_within_its_grace(self):
        process = self.drive("start", self.request("echo begin; exec sleep 600"))
        self.wait_for_logs()
        begin = time.monotonic()
        process.terminate()
        result = self.finish(process)[-1]["result"]
        self.assertLess(time.monotonic() - begin, 10 * SLOWER)
        self.assertEqual([rank["signal"] for rank in result["ranks"]], [15, 15, 15, 15])
        self.assertFalse(result["failed_by_itself"])
        self.assertEqual(processes_with(f"ASSAY_TREE={self.run_id}/"), [])

    def test_kills_a_rank_that_does_not_stop(self):
        process = self.drive("start", self.request("trap '' TERM; echo begin; while :; do sleep 0.1; done"))
        self.wait_for_logs()
        process.terminate()
        result = self.finish(process)[-1]["result"]
        self.assertEqual([rank["signal"] for rank in result["ranks"]], [9, 9, 9, 9])

    def test_reattaches_after_a_killed_controller(self):
        gate = self.folder / "gate"
        request = self.request(f"echo begin; while [ ! -e '{gate}' ]; do sleep 0.1; done; exit $((RANK == 2 ? 5 : 0))")
        first = self.drive("start", request)
        self.wait_for_logs()
        job = self.job_id()
        first.kill()
        first.wait()
        second = self.drive("attach", request)
        self.wait_until(lambda: json.loads(second.stdout.readline()) == {"attached": True}, "attached")
        gate.touch()
        result = self.finish(second)[-1]["result"]
        self.assertEqual((result["status"]["code"], result["deciding_rank"]), (5, 2))
        self.assertEqual(self.job_id(), job, "the same job, not another")
        self.assertEqual((self.step / "rank0.log").read_text(), "begin\n", "it was not begun again")
        again = self.finish(self.drive("attach", request))[-1]["result"]
        self.assertEqual(self.codes(again)[2], 5, "the end is known later too")

    def test_finds_a_job_by_its_name(self):
        request = self.request("echo begin; exec sleep 600")
        first = self.drive("start", request)
        self.wait_for_logs()
        job = self.job_id()
        first.kill()
        first.wait()
        note = json.loads((self.step / "slurm.json").read_text())
        (self.step / "slurm.json").write_text(json.dumps({**note, "job_id": None, "state": "submitting"}))
        second = self.drive("attach", request)
        self.wait_until(lambda: json.loads(second.stdout.readline()) == {"attached": True}, "attached")
        self.assertEqual(self.job_id(), job)
        second.terminate()
        self.finish(second)

    def test_ends_another_attempt(self):
        first = self.drive("start", self.request("echo begin; exec sleep 600"))
        self.wait_for_logs()
        first.kill()
        first.wait()
        self.assertEqual(self.finish(self.drive("attach", self.request("true", attempt=2)))[-1], {"attached": False})
        self.assertEqual(self.cluster.command("squeue", "--noheader", "--states=running,pending").strip(), "")
        result = self.run_step("true", attempt=2)["result"]
        self.assertEqual(self.codes(result), [0, 0, 0, 0])

    def test_ends_the_job_when_the_lease_expires(self):
        process = self.drive("start", self.request("echo begin; exec sleep 600", lease_s=3))
        self.wait_for_logs()
        process.kill()
        process.wait()
        self.wait_until(lambda: not processes_with(f"ASSAY_TREE={self.run_id}/"), "the end of every rank", 25)
        self.wait_until(lambda: not self.cluster.command("squeue", "--noheader").strip(), "the end of the job")

    def test_starts_nothing_long_after_a_killed_controller(self):
        blocker = self.cluster.command("sbatch", "--parsable", "--nodes=2", "--exclusive", "--output=/dev/null",
                                       "--wrap=exec sleep 600").strip()
        process = self.drive("start", self.request("echo begin; exec sleep 600", lease_s=2))
        self.wait_until(lambda: re.search(r"queued by Slurm as job \d+: (Resources|Priority)", process.stdout.readline()),
                        "its place in the queue")
        self.assertEqual(json.loads((self.step / "slurm.json").read_text())["state"], "queued")
        process.kill()
        process.wait()
        time.sleep(3)
        self.cluster.command("scancel", blocker)
        self.wait_until(lambda: not self.cluster.command("squeue", "--noheader").strip(), "the end of the job")
        self.assertEqual(list(self.step.glob("rank*.log")), [])
        self.assertIn("lease expired", (self.step / "slurm.attempt1.log").read_text())

    def test_queues_a_job_and_runs_it(self):
        blocker = self.cluster.command("sbatch", "--parsable", "--nodes=2", "--exclusive", "--output=/dev/null",
                                       "--wrap=exec sleep 600").strip()
        process = self.drive("start", self.request("true"))
        self.wait_until(lambda: (self.step / "slurm.json").exists() and
                        json.loads((self.step / "slurm.json").read_text())["state"] == "queued", "queued")
        time.sleep(1)
        self.assertIsNone(process.poll())
        self.cluster.command("scancel", blocker)
        lines = self.finish(process)
        self.assertTrue([line for line in lines if "queued by Slurm as job" in line.get("queued", "")], lines)
        self.assertEqual(self.codes(lines[-1]["result"]), [0, 0, 0, 0])

    def test_cancels_a_waiting_job_at_a_stop(self):
        blocker = self.cluster.command("sbatch", "--parsable", "--nodes=2", "--exclusive", "--output=/dev/null",
                                       "--wrap=exec sleep 600").strip()
        process = self.drive("start", self.request("echo begin"))
        self.wait_until(lambda: (self.step / "slurm.json").exists() and self.job_id(), "submitted")
        begin = time.monotonic()
        process.terminate()
        result = self.finish(process)[-1]["result"]
        self.assertLess(time.monotonic() - begin, 15 * SLOWER)
        self.assertFalse(result["failed_by_itself"])
        self.assertEqual(result["infrastructure"], "")
        self.assertEqual(self.cluster.command("squeue", "--noheader", "--format=%i").split(), [blocker])
        self.cluster.command("scancel", blocker)

    def test_rejects_a_missing_partition_at_once(self):
        begin = time.monotonic()
        last = self.run_step("true", slurm={"partition": "nowhere"})
        self.assertEqual(last["kind"], "infrastructure")
        self.assertIn("invalid partition specified: nowhere", last["error"])
        self.assertLess(time.monotonic() - begin, 10 * SLOWER)

    def test_checks_the_partition_before_anything_starts(self):
        self.assertEqual(self.run_step("true", "check")["problem"], "")
        self.assertEqual(self.run_step("true", "check", slurm={"partition": "p"})["problem"], "")
        self.assertEqual(self.run_step("true", "check", nnodes=3)["problem"], "partition 'p' has 2 nodes, and 3 are needed")
        self.assertIn("no partition 'nowhere'", self.run_step("true", "check", slurm={"partition": "nowhere"})["problem"])

    def test_rejects_more_nodes_than_exist_at_once(self):
        begin = time.monotonic()
        last = self.run_step("true", nnodes=5)
        said = last.get("error") or last["result"]["infrastructure"]
        self.assertRegex(said, "PartitionConfig|PartitionNodeLimit|node configuration is not available|5 are needed")
        self.assertLess(time.monotonic() - begin, 20 * SLOWER)
        self.assertEqual(self.cluster.command("squeue", "--noheader").strip(), "")

    def test_names_the_node_of_a_missing_program(self):
        request = json.loads(self.request("true").read_text())
        request["argv"] = ["/no/such/program"]
        path = self.folder / "request.json"
        path.write_text(json.dumps(request))
        last = self.finish(self.drive("start", path))[-1]
        self.assertIn("/no/such/program", last["result"]["infrastructure"])
        self.assertRegex(last["result"]["infrastructure"], r"^n[12]: ")

    def test_gives_paddle_ranks_every_endpoint(self):
        self.run_step('echo "$PADDLE_TRAINER_ID $PADDLE_CURRENT_ENDPOINT $PADDLE_TRAINER_ENDPOINTS"', framework="paddle_2.5")
        words = [(self.step / f"rank{rank}.log").read_text().split() for rank in range(4)]
        endpoints = words[0][2].split(",")
        self.assertEqual(len(set(endpoints)), 4)
        for rank, found in enumerate(words):
            self.assertEqual(found, [str(rank), endpoints[rank], ",".join(endpoints)])


    def test_gives_mindspore_ranks_a_table_of_all_nodes(self):
        result = self.run_step('cat "$RANK_TABLE_FILE"', framework="mindspore")["result"]
        self.assertEqual((self.codes(result), result["infrastructure"]), ([0, 0, 0, 0], ""))
        tables = [json.loads((self.step / f"rank{rank}.log").read_text()) for rank in range(4)]
        self.assertEqual(tables[0], tables[3])
        devices = [device for server in tables[0]["server_list"] for device in server["device"]]
        self.assertEqual([device["rank_id"] for device in devices], ["0", "1", "2", "3"])
        if not os.path.exists("/etc/hccn.conf"):  # of real NPUs
            self.assertEqual({device["device_ip"] for device in devices}, {"127.0.0.1"})


class VendorSetup(CampaignTest):
    """The vendor's setup runs once on every node that a job of the campaign comes to, whichever Slurm gives it."""
    STEP = "quick-pytorch-cpu-1x1"
    LIMIT = 10 if SLOWER == 1 else 60  # seconds: more than a supervisor needs to begin, on a busy machine too

    @classmethod
    def setUpClass(cls):
        cls.cluster = slurm_support.cluster_of(cls)

    def setUp(self):
        super().setUp()
        vendor = self.home / "vendors/fake"
        # Both nodes are this machine, so a device with a lock would be in use on the other one too: cpu has none.
        (vendor / "vendor.yaml").write_text("name: fake\nhardware:\n  cpu: {visible_devices: FAKE_DEVICES}\n")
        for nnodes in 1, 2:
            (vendor / f"quick/config_cpux{nnodes}x1.yaml").write_text("# as it is\n")
        self.lines = self.folder / "lines"
        self.gate = self.folder / "gate"
        self.addCleanup(self.cluster.command, "scancel", "--partition=p", check=False)

    def environment(self, **more):
        return {**super().environment(), "SLURM_CONF": self.cluster.environment["SLURM_CONF"], **more}

    def campaign(self, setup, cases, options=(), **more):
        script = self.home / "vendors/fake/setup"
        script.write_text(f"#!/bin/sh\n{setup}\n")
        script.chmod(0o755)
        self.write(cases, launcher="slurm", slurm={"partition": "p", "options": list(options)},
                   environment={"SETUP_LINES": str(self.lines), "GATE": str(self.gate)}, **more)

    def prepared(self):
        """The nodes on which the setup has begun, each time."""
        return self.lines.read_text().split() if self.lines.exists() else []

    def nodes(self, run):
        return [node["name"] for path in run.glob("steps/*/slurm.nodes.json") for node in json.loads(path.read_text())]

    def test_runs_once_on_every_node_of_a_job(self):
        self.campaign('echo "$SLURMD_NODENAME" >> "$SETUP_LINES"', {"quick:pytorch:cpu:1:1:5": {"set": {"what": "gate"}}},
                      options=["--exclusive"], concurrency=2)
        self.assertIn("setup code/vendor-fake/setup, once on every host", self.assay("run", "campaign.yaml", "--dry-run").stdout)
        process = self.start("run", "campaign.yaml")
        self.wait_until("a setup on both nodes", lambda: sorted(self.prepared()) == ["n1", "n2"], 120 * SLOWER)
        self.gate.touch()
        out, err = process.communicate(timeout=300 * SLOWER)
        self.assertEqual(process.returncode, 0, out + err)
        run = self.last_run()
        nodes = self.nodes(run)
        self.assertEqual((len(nodes), set(nodes)), (5, {"n1", "n2"}))
        self.assertEqual(sorted(self.prepared()), ["n1", "n2"], "each once, whatever came later")
        self.assertEqual(sorted(path.name for path in (run / "setup").glob("*.done")), ["n1.done", "n2.done"])
        self.assertNotIn("setup", self.ends(run))
        self.assert_nothing_runs(run)

    def test_lets_simultaneous_jobs_wait_for_it(self):
        self.campaign('echo "$SLURMD_NODENAME" >> "$SETUP_LINES"; sleep 2; echo ready > "$GATE"',
                      {"quick:pytorch:cpu:1:1:2": {"set": {"what": "fail"}}}, options=["--nodelist=n1"], concurrency=2)
        self.assay("run", "campaign.yaml")  # a rank that began before the setup had ended would have failed
        self.assertEqual(self.prepared(), ["n1"])

    def test_lets_ranks_wait_for_the_setup_of_the_other_node(self):
        self.campaign('echo "$SLURMD_NODENAME" >> "$SETUP_LINES"; [ "$SLURMD_NODENAME" = n2 ] || { sleep 2; echo ready > "$GATE"; }',
                      {"quick:pytorch:cpu:2:1:1": {"set": {"what": "fail"}}})
        self.assay("run", "campaign.yaml")  # the rank of n2 would have failed if it had begun before the gate was there
        self.assertEqual(sorted(self.prepared()), ["n1", "n2"])

    def test_names_the_failing_node_and_retries(self):
        self.campaign('echo "$SLURMD_NODENAME" >> "$SETUP_LINES"; echo looking; [ -e "$GATE" ] || { echo no driver here >&2; exit 3; }',
                      {"quick:pytorch:cpu:1:1:1": None}, options=["--nodelist=n2"], retries=1)
        self.assay("run", "campaign.yaml", expect=4)
        end = self.ends()[self.STEP]
        self.assertEqual((end["reason"], end["infrastructure"]), ("n2: setup: exit code 3: looking; no driver here", True))
        self.assertEqual(self.prepared(), ["n2", "n2"], "the retry tried it again")
        run = self.last_run()
        self.assertFalse((run / f"steps/1-{self.STEP}/rank0.log").exists(), "no rank was started")
        self.assertFalse((run / "setup/n2.done").exists())
        self.gate.touch()
        self.assay("resume", "last", "--retry-failed")
        self.assertEqual(self.ends(run)[self.STEP]["outcome"], "Pass")
        self.assertEqual(self.prepared(), ["n2"] * 3)
        self.assertTrue((run / "setup/n2.done").exists())
        self.assert_nothing_runs(run)

    def test_ends_at_limits_of_time_and_silence(self):
        for limit, reason in ("time_limit", "stopped at its time limit of"), ("stall_limit", "stopped: no line and no record for"):
            self.campaign("echo begin; sleep 1000 & exec sleep 1000", {"quick:pytorch:cpu:1:1:1": {limit: self.LIMIT}}, retries=0)
            self.assay("run", "campaign.yaml", expect=1)
            self.assertIn(reason, self.ends()[self.STEP]["reason"])
            step = self.last_run() / f"steps/1-{self.STEP}"
            self.assertEqual((step / "setup.node0.log").read_text(), "begin\n")
            self.assertFalse((step / "rank0.log").exists())
            self.assertEqual(list((self.last_run() / "setup").glob("*.done")), [])
            self.assert_nothing_runs()

    def test_accepts_a_setup_with_output_as_not_silent(self):
        self.campaign(f"for i in $(seq {self.LIMIT + 3}); do echo $i; sleep 1; done",
                      {"quick:pytorch:cpu:1:1:1": {"stall_limit": self.LIMIT}})
        self.assay("run", "campaign.yaml")

    def test_ends_at_stop_and_scancel(self):
        self.campaign('echo "$SLURMD_NODENAME" >> "$SETUP_LINES"; sleep 1000 & exec sleep 1000',
                      {"quick:pytorch:cpu:1:1:1": None}, retries=0)
        process = self.start("run", "campaign.yaml")
        self.wait_until("the setup", self.prepared, 60 * SLOWER)
        self.assay("stop", "last")
        self.assertEqual(process.wait(60 * SLOWER), 130)
        self.assert_nothing_runs()
        self.lines.unlink()
        process = self.start("resume", "last")
        self.wait_until("the setup", self.prepared, 60 * SLOWER)
        note = json.loads((self.last_run() / f"steps/1-{self.STEP}/slurm.json").read_text())
        self.cluster.command("scancel", note["job_id"])
        self.assertEqual(process.wait(120 * SLOWER), 4)
        self.assertIn("cancelled from outside (CANCELLED)", self.ends()[self.STEP]["reason"])
        self.assert_nothing_runs()

    def test_ends_when_the_lease_expires(self):
        self.campaign('echo "$SLURMD_NODENAME" >> "$SETUP_LINES"; sleep 1000 & exec sleep 1000',
                      {"quick:pytorch:cpu:1:1:1": None}, lease=4)
        process = self.start("run", "campaign.yaml")
        self.wait_until("the setup", self.prepared, 60 * SLOWER)
        process.kill()
        process.wait()
        self.assert_nothing_runs()
        self.assertEqual(list((self.last_run() / "setup").glob("*.done")), [])


class TwoClusters(unittest.TestCase):
    def test_keeps_apart(self):
        with tempfile.TemporaryDirectory(prefix="assay-slurm-") as folder:
            clusters = []
            try:
                for i in range(2):
                    clusters.append(slurm_support.SlurmCluster(pathlib.Path(folder) / str(i), num_nodes=1))
                first, second = clusters
                job = first.command("sbatch", "--parsable", "--output=/dev/null", "--wrap=sleep 60").strip()
                self.assertIn(job, first.command("squeue", "--noheader"))
                self.assertEqual(second.command("squeue", "--noheader"), "")
            finally:
                for cluster in clusters:
                    cluster.stop()


if __name__ == "__main__":
    reason = slurm_support.missing()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    unittest.main()
