"""A job on a host by plain ssh: what supervisor and relay say, read by another program than ours.

The tests of the launcher itself are in tests/control/launch/ssh/ssh_transport_test.cpp."""
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time
import unittest

import ssh_support
from support import ASSAY, CliTest, SLOWER, processes_with

SKIPPED = 77  # what tests/CMakeLists.txt has ctest show as a skip


class Relay:
    """The controller's end of `assay relay`, after its description in docs/design/launchers.md."""

    def __init__(self, hosts, folder, have):
        self.process = subprocess.Popen(hosts.ssh(0) + [shlex.join([ASSAY, "relay", str(folder), "--node", "0"])],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.have = have
        self.state = None
        self.tell(json.dumps({"have": {name: len(content) for name, content in have.items()}}))

    def tell(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def frame(self):
        """Reads one frame; returns its header."""
        header = json.loads(self.process.stdout.readline())
        data = self.process.stdout.read(header.get("bytes", 0))
        if "file" in header:
            known = self.have.setdefault(header["file"], b"")
            assert header["offset"] == len(known), f"{header} after {len(known)} bytes"
            self.have[header["file"]] = known + data
        elif "state" in header:
            self.state = json.loads(data)
        return header

    def until(self, enough):
        while True:
            header = self.frame()
            if enough(header):
                return header

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(timeout=10)


class SshHostsTest(CliTest):
    def setUp(self):
        super().setUp()
        self.hosts = ssh_support.SshHosts(self.folder / "ssh", 1)
        self.addCleanup(self.hosts.close)
        self.step = pathlib.Path(self.hosts.hosts[0]["work_dir"]) / "run-1" / "steps" / "1-train"
        self.step.mkdir(parents=True)
        self.mark = f"ssh-hosts-test-{os.getpid()}-{time.time_ns()}"

    def write_job(self, script, **changes):
        job = {"format": 1, "run_id": "run-1", "attempt": 1, "argv": ["/bin/sh", "-c", script], "env": {},
               "cwd": str(self.step.parents[1]), "nproc": 2, "nnodes": 1, "node_rank": 0, "num_servers": 0,
               "tree_mark": self.mark, "nodes": [{"name": "node1", "address": "127.0.0.2", "devices": [0, 1]}],
               "hardware": "test", "visible_devices": "", "framework": "", "lease_s": 60, "monitor_interval_s": 0, "monitor_command": [], "clear_caches": False,
               "collect": [], "staged": [], **changes}
        path = self.step / "job.node0.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps(job))

    def supervise(self, expect=0):
        done = subprocess.run(self.hosts.ssh(0) + [shlex.join([ASSAY, "supervise", str(self.step), "--node", "0"])],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done

    def wait_until(self, condition, seconds=60):
        limit = time.monotonic() + seconds * SLOWER
        while not condition():
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.05)

    def test_continues_the_job_after_the_session(self):
        self.write_job("until test -e go; do sleep 0.05; done; echo rank $RANK")
        self.supervise()  # ssh comes back before the job ends
        self.assertNotEqual(processes_with(self.mark), [])
        (self.step.parents[1] / "go").touch()
        relay = Relay(self.hosts, self.step, {})
        relay.until(lambda header: relay.state and relay.state["state"] == "ended")
        self.assertEqual(relay.have["rank1.log"], b"rank 1\n")
        self.assertEqual([rank["code"] for rank in relay.state["result"]["ranks"]], [0, 0])
        self.assertEqual(relay.close(), 0)

    def test_receives_every_byte_once_over_lost_connections(self):
        self.write_job("i=0; while test $i -lt 150; do echo $RANK line $i; i=$((i+1)); sleep 0.01; done", lease_s=20)
        self.supervise()
        have = {}
        for _ in range(3):
            relay = Relay(self.hosts, self.step, have)
            relay.until(lambda header: header.get("file") == "rank0.log")
            self.hosts.cut(0)
            relay.close()
        relay = Relay(self.hosts, self.step, have)
        relay.until(lambda header: relay.state and relay.state["state"] == "ended")
        relay.close()
        for rank in 0, 1:
            self.assertEqual(have[f"rank{rank}.log"], b"".join(b"%d line %d\n" % (rank, i) for i in range(150)))

    def test_ends_at_a_stop_or_an_expired_lease(self):
        self.write_job("sleep 100")
        self.supervise()
        relay = Relay(self.hosts, self.step, {})
        relay.tell("stop 1")
        relay.until(lambda header: relay.state and relay.state["state"] == "ended")
        relay.close()
        self.assertEqual(processes_with(self.mark), [])
        self.write_job("sleep 100", attempt=2, lease_s=6)
        self.supervise()
        relay = Relay(self.hosts, self.step, {})
        for _ in range(32):  # kept for eight seconds
            relay.tell("lease")
            time.sleep(0.25)
        self.assertNotEqual(processes_with(self.mark), [])
        relay.close()
        self.wait_until(lambda: processes_with(self.mark) == [])
        self.wait_until(lambda: json.loads((self.step / "state.node0.json").read_text())["state"] == "ended")
        self.assertEqual(json.loads((self.step / "state.node0.json").read_text())["error"]["kind"], "lease")

    def test_reports_faults_at_once(self):
        self.write_job("true", nproc="two")
        self.assertIn("job.node0.json: nproc must be an integer", self.supervise(expect=2).stderr)
        self.write_job("true", argv=["no-such-program"])
        self.assertIn("no-such-program", self.supervise(expect=4).stderr)


if __name__ == "__main__":
    reason = ssh_support.missing()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    unittest.main()
