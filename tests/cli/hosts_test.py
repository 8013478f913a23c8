"""Training over hosts. Two of them, made of network namespaces: each has an address, a hostname and a /dev/shm of its own."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import parallel_data
from support import ASSAY, DEADLINE_S, SLOWER, CliTest, json_lines, processes_with

import worker_support  # makes tests/peers importable
import tensor_file

SKIPPED = 77  # what tests/CMakeLists.txt has ctest show as a skip
PORT = 29555
TINY = ["Model.hidden_size=32", "Model.num_layers=4", "Model.num_attention_heads=4", "Model.ffn_hidden_size=64",
        "Model.max_position_embeddings=16", "Data.Train.dataset.max_seq_len=16", "Global.global_batch_size=8",
        "Global.local_batch_size=null", "Model.hidden_dropout_prob=0", "Model.attention_probs_dropout_prob=0",
        "Data.Eval=null", "Engine.logging_freq=1", "Engine.num_train_epochs=1000000", "Engine.precision=float64",
        "Optimizer.epsilon=0.001"]


def missing():
    """Why hosts cannot be made here; None when they can."""
    if os.geteuid() != 0:
        return "hosts need root, for network namespaces"
    for tool in "ip", "tc", "unshare", "mount", "hostname":
        if not shutil.which(tool):
            return f"hosts need the program {tool} (packages iproute2, util-linux, hostname)"
    name = f"assay-probe-{os.getpid()}"
    created = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if created.returncode != 0:
        return f"no network namespaces here: {created.stderr.strip()}"
    try:
        entered = subprocess.run(["ip", "netns", "exec", name, "unshare", "--uts", "--ipc", "--mount", "true"],
                                 capture_output=True, text=True)
        return None if entered.returncode == 0 else f"no namespaces of hosts here: {entered.stderr.strip()}"
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


class Hosts:
    """Two hosts at a switch. Nothing of the real host's network is touched."""

    def __init__(self):
        tag = f"assay{os.getpid()}"
        self.switch = f"{tag}-sw"
        self.names = [f"{tag}-h1", f"{tag}-h2"]
        self.addresses = ["10.78.0.1", "10.78.0.2"]
        self.ip("netns", "add", self.switch)
        self.ip("-n", self.switch, "link", "add", "br0", "type", "bridge", "forward_delay", "0")
        self.ip("-n", self.switch, "link", "set", "br0", "up")
        for i, name in enumerate(self.names):
            self.ip("netns", "add", name)
            self.ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", f"port{i}", "netns", self.switch)
            self.ip("-n", self.switch, "link", "set", f"port{i}", "master", "br0", "up")
            self.ip("-n", name, "address", "add", f"{self.addresses[i]}/24", "dev", "eth0")
            for link in "lo", "eth0":
                self.ip("-n", name, "link", "set", link, "up")

    def ip(self, *words):
        subprocess.run(["ip", *words], check=True, capture_output=True)

    def remove(self):
        for name in *self.names, self.switch:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def command(self, host, words):
        """The words, to be run on a host."""
        enter = 'hostname "$0" && mount -t tmpfs shm /dev/shm && exec "$@"'
        return ["ip", "netns", "exec", self.names[host], "unshare", "--uts", "--ipc", "--mount", "sh", "-c", enter,
                f"host{host + 1}", *words]

    def limit_rate(self, rate):
        for name in self.names:
            subprocess.run(["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate,
                            "burst", "16kb", "latency", "200ms"], check=True, capture_output=True)

    def cut(self):
        self.ip("-n", self.switch, "link", "set", "port1", "down")


class OverHosts(CliTest):
    def setUp(self):
        super().setUp()
        self.hosts = Hosts()
        self.addCleanup(self.hosts.remove)
        self.data = parallel_data.prepare("gpt", self.assay, self.folder / "data")

    def words(self, *more):
        tiny = [word for setting in TINY for word in ("--set", setting)]
        return ["train", "gpt", *self.data, *tiny, *map(str, more)]

    def start_on_hosts(self, *more):
        """The same command on both hosts, two processes each: two replicas of a model in two parts."""
        processes = []
        for node in 0, 1:
            runs = self.folder / f"runs{node}"
            words = [ASSAY, "--runs", str(runs), *self.words(
                "--nnode", 2, "--node_rank", node, "--nproc_per_node", 2, "--master_addr", self.hosts.addresses[0],
                "--master_port", PORT, "--set", "Distributed.mp_degree=2", *more)]
            process = subprocess.Popen(self.hosts.command(node, words), cwd=self.folder, env=self.environment(),
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(self.end, process)
            processes.append(process)
        return processes

    def finish(self, processes, expect=0):
        texts = []
        for process in processes:
            out, err = process.communicate(timeout=DEADLINE_S)
            texts.append(out + err)
        for process, text in zip(processes, texts):
            self.assertEqual(process.returncode, expect, "\n".join(texts))
        self.assertEqual(processes_with(str(self.folder)), [], "nothing is left on any host")
        return texts

    def run_of(self, node):
        found = [path for path in (self.folder / f"runs{node}").iterdir() if path.is_dir() and not path.name.startswith(".")]
        self.assertEqual(len(found), 1)
        return found[0]

    def metric(self, records, name):
        found = {}
        for record in json_lines(records):
            if record.get("name") == "RESUMED":
                found = {step: value for step, value in found.items() if step <= record["data"]["global_step"]}
            if name in record.get("data", {}) and "global_step" in record["data"]:
                found[record["data"]["global_step"]] = record["data"][name]
        return found

    def node0_records(self):
        return self.run_of(0) / "steps/1-train/records.jsonl"

    def weights_hash(self):
        result = [record for record in json_lines(self.node0_records()) if record["type"] == "result"][-1]
        return result["data"]["hashes"]["weights"]

    def wait_for_step(self, step):
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            runs = self.folder / "runs0"
            for records in runs.glob("[!.]*/steps/1-train/records.jsonl") if runs.exists() else []:
                if f'"global_step":{step},' in records.read_text() or f'"global_step":{step}}}' in records.read_text():
                    return
            time.sleep(0.05)
        self.fail(f"step {step} was not reached")

    def test_trains_on_two_hosts_as_in_one_process(self):
        self.assay(*self.words("--step", 8))
        alone = self.metric(self.runs()[0] / "steps/1-train/records.jsonl", "train.loss")
        self.finish(self.start_on_hosts("--step", 8))
        together = self.metric(self.node0_records(), "train.loss")
        self.assertEqual(together.keys(), alone.keys())
        self.assertEqual(len(alone), 8)
        for step, loss in alone.items():
            self.assertLess(abs(together[step] - loss), 1e-10 * abs(loss), f"step {step}")
        first, second = (self.run_of(node) / "steps/1-train" for node in (0, 1))
        ours, theirs = (tensor_file.load(str(step / "output/model.safetensors"))
                        for step in (first, self.runs()[0] / "steps/1-train"))
        self.assertEqual(ours.keys(), theirs.keys())
        for name, tensor in theirs.items():
            apart = (ours[name] - tensor).abs().max().item()
            self.assertLessEqual(apart, 1e-10 * max(tensor.abs().max().item(), 1e-2), name)
        self.assertEqual(sorted(path.name for path in second.glob("rank*.log")), ["rank2.log", "rank3.log"])
        plan = json.loads((self.run_of(1) / "plan.json").read_text())["steps"][0]
        self.assertEqual((plan["nnodes"], plan["node_rank"], plan["outputs"]), (2, 1, []))

    def test_shows_a_slow_link_in_the_communication_time(self):
        self.finish(self.start_on_hosts("--step", 6))
        fast = self.metric(self.node0_records(), "train.comm_time")
        shutil.rmtree(self.folder / "runs0")
        shutil.rmtree(self.folder / "runs1")
        self.hosts.limit_rate("8mbit")
        self.finish(self.start_on_hosts("--step", 6))
        slow = self.metric(self.node0_records(), "train.comm_time")
        self.assertEqual(len(slow), 6)
        # 40,000 weights of 8 bytes or more go over a link of 1 MB/s in every step.
        self.assertGreater(min(slow.values()), 0.1)
        self.assertGreater(min(slow.values()), 2 * min(fast.values()))  # a busy machine has slow steps too, but not only such

    def test_ends_every_rank_at_a_cut_link_and_names_a_lost_one(self):
        processes = self.start_on_hosts("--step", 1000000, "--set", "Distributed.max_restarts=0",
                                        "--set", "Distributed.comm.time_limit_s=5")
        self.wait_for_step(3)
        self.hosts.cut()
        begin = time.monotonic()
        texts = self.finish(processes, expect=13)
        self.assertLess(time.monotonic() - begin, 5 + 100 * SLOWER, "a limit of 5 s, and some to end; the default limit is much longer")
        for node, text in enumerate(texts):
            self.assertRegex(text, r"rank \d: exit code 13 \(communication\)")
            journal = json_lines(self.run_of(node) / "journal.jsonl")
            end, = [line for line in journal if line["event"] == "step_ended"]
            self.assertEqual(end["exit_code"], 13)
            others = (2, 3) if node == 0 else (0, 1)
            said = end["reason"].split("communication", 1)[1]
            self.assertTrue([rank for rank in others if re.search(rf"ranks? ([0-9, ]|and)*\b{rank}\b", said)], end["reason"])

    def test_restarts_both_hosts_after_a_killed_rank(self):
        self.finish(self.start_on_hosts("--step", 240, "--set", "Engine.save_load.save_steps=40"))
        whole = self.weights_hash()
        shutil.rmtree(self.folder / "runs0")
        shutil.rmtree(self.folder / "runs1")
        processes = self.start_on_hosts("--step", 240, "--set", "Engine.save_load.save_steps=40")
        self.wait_for_step(90)
        mark = f"ASSAY_TREE={self.run_of(1).name}/train/3\0"
        victims = [pid for pid in processes_with(mark)]
        os.kill(victims[0], signal.SIGKILL)
        self.finish(processes)
        for node in 0, 1:
            journal = json_lines(self.run_of(node) / "journal.jsonl")
            self.assertTrue([line for line in journal if line["event"] == "step_restarted"], f"node {node}")
        self.assertEqual(self.weights_hash(), whole)


if __name__ == "__main__":
    reason = missing()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    unittest.main()
