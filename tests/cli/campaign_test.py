"""Campaigns on this machine: `assay run campaign.yaml` and the commands around it, with crashes on purpose."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest

from campaign_support import CampaignTest
from support import json_lines, processes_with

FASHION = "/usr/share/datasets/fashion-mnist"


class RunTest(CampaignTest):
    def test_runs_judges_and_shows_rounds(self):
        self.write({"quick:pytorch:chip:1:2:2": None})
        done = self.assay("run", "campaign.yaml")
        self.assertEqual({name: end["outcome"] for name, end in self.ends().items()},
                         {"quick-pytorch-chip-1x2-r1": "Pass", "quick-pytorch-chip-1x2-r2": "Pass",
                          "quick-pytorch-chip-1x2-target": "Pass"})
        self.assertIn("0.9100 >= 0.9000", done.stdout)
        step = self.last_run() / "steps/1-quick-pytorch-chip-1x2-r1"
        self.assertIn("rank 1 of 2", (step / "rank1.log").read_text())
        self.assertIn("device 0,1", (step / "rank1.log").read_text())
        self.assertEqual(json_lines(step / "records.jsonl")[0]["data"]["train.loss"], 1.0)
        self.assertTrue((step / "monitor.node0.jsonl").exists())
        self.assertIn("suspect", json.loads((step / "disturbance.json").read_text()))
        self.assertIn("quick", self.assay("table", "last").stdout)
        self.assertIn("accuracy 0.91", self.assay("logs", "last", "--step", "quick-pytorch-chip-1x2-r2").stdout)
        self.assertEqual(json.loads(self.assay("ps", "--all", "--json").stdout)[0]["state"], "Pass")
        self.assert_nothing_runs()

    def test_rejects_wrong_patterns_before_anything_starts(self):
        self.write({"quick:pytorch:chip:1:1:1": None})
        path = self.home / "cases/quick/case.yaml"
        good = path.read_text()
        for wrong, place in [(good.replace("^accuracy ([^ ]+)", "^accuracy ([^ ]+"), "case.yaml:15:8: config.patterns.1.match"),
                             (good[:good.index("  patterns:")] + "  patterns: 5\n", "case.yaml:13:3: config.patterns:"),
                             (good.replace("names: [final_accuracy]", "nmaes: [final_accuracy]"), "config.patterns.1.nmaes")]:
            path.write_text(wrong)
            for more in [], ["--check"], ["--dry-run"]:
                with self.subTest(place=place, more=more):
                    self.assertIn(place, self.assay("run", "campaign.yaml", *more, expect=2).stderr)
            self.assertEqual(self.runs(), [])

    def test_starts_nothing_in_a_dry_run(self):
        self.write({"quick:pytorch:chip:1:1:1": None})
        self.assertIn("quick-pytorch-chip-1x1", self.assay("run", "campaign.yaml", "--dry-run").stdout)
        self.assertEqual(self.runs(), [])

    def test_blames_the_first_failing_rank(self):
        for what, reason, code, number in (("fail", "rank 1: exit code 7: it broke", 7, None),
                                           ("die", "rank 1: killed by signal 9", None, 9)):
            self.write({"quick:pytorch:chip:1:2:1": {"set": {"what": what, "count": 100000}}})
            done = self.assay("run", "campaign.yaml", expect=1)  # long before its other rank would end
            end = self.ends()["quick-pytorch-chip-1x2"]
            self.assertTrue(end["reason"].startswith(reason), end)
            self.assertEqual((end["exit_code"], end["signal"], end["rank"]), (code, number, 1))
            self.assertIn("Last lines of", done.stdout)
            self.assert_nothing_runs()

    def test_keeps_limits_of_time_and_silence(self):
        self.write({"quick:pytorch:chip:1:1:1": {"set": {"what": "hang"}, "stall_limit": 1}})
        self.assay("run", "campaign.yaml", expect=1)
        self.assertIn("no line and no record for 1.0", self.ends()["quick-pytorch-chip-1x1"]["reason"])
        # One that writes records is silent without them, whatever else it says.
        self.write({"quick:pytorch:chip:1:1:1": {"set": {"what": "chatter"}, "stall_limit": 2}})
        self.assay("run", "campaign.yaml", expect=1)
        self.assertIn("no line and no record for 2.0", self.ends()["quick-pytorch-chip-1x1"]["reason"])
        self.write({"quick:pytorch:chip:1:1:1": {"set": {"what": "hang"}, "time_limit": 1}})
        self.assay("run", "campaign.yaml", expect=1)
        self.assertIn("stopped at its time limit", self.ends()["quick-pytorch-chip-1x1"]["reason"])
        self.assert_nothing_runs()

    def test_reports_a_busy_port_at_once(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            taken_port = taken.getsockname()[1]
            self.write({"quick:pytorch:chip:1:2:1": None}, master_port=taken_port, retries=0)
            done = self.assay("run", "campaign.yaml", expect=4)
        self.assertIn(f"port {taken_port} is in use", done.stderr)
        self.assertEqual(self.runs(), [])  # nothing was started

    def test_names_the_user_of_a_busy_device(self):
        self.write({"quick:pytorch:chip:1:1:1": {"set": {"what": "hang"}}})
        first = self.start("run", "campaign.yaml")
        self.wait_for_log("step 2")
        holder = self.last_run()
        self.write({"quick:pytorch:chip:1:1:1": None}, name="second.yaml", retries=0)
        done = self.assay("run", "second.yaml", expect=4)
        self.assertIn(f"device chip 0 of {os.uname().nodename} is in use by run {holder.name} of user", done.stderr)
        self.assertEqual(self.runs(), [holder])  # told before anything was started
        self.write({"quick:pytorch:chip:1:1:1": None}, name="third.yaml", devices=[5])
        self.assay("run", "third.yaml", "--check")  # another device is free
        first.send_signal(signal.SIGINT)
        self.assertEqual(first.wait(60), 130)
        self.assert_nothing_runs(holder)
        self.assay("run", "second.yaml")

    def test_runs_two_campaigns_on_their_own_devices(self):
        gate = self.folder / "gate"
        self.write({"quick:pytorch:chip:1:1:2": {"set": {"what": "gate"}}, "quick:pytorch:chip:1:2:1": None}, concurrency=3,
                   devices=[0, 1, 2], environment={"GATE": str(gate)})
        first = self.start("run", "campaign.yaml")
        self.wait_for_log("step 2")
        self.write({"quick:pytorch:chip:1:2:1": None}, name="second.yaml", devices=[5, 7])
        self.assay("run", "second.yaml")
        self.assertIsNone(first.poll(), "both were at work")
        self.assertIn("device 5,7", next(self.last_run().glob("steps/*/rank0.log")).read_text())
        gate.touch()
        self.assertEqual(first.wait(120), 0)

    def test_names_the_place_in_wrong_files(self):
        for text, wanted in ((b"vendor: fake\ncases: {quick:pytorch:chip:1:1:1: /}\nretrys: 3\n", "campaign.yaml:3: .*retries"),
                             (b"vendor: fake\ncases:\n  quik:pytorch:chip:1:1:1:\n", "campaign.yaml:3: .*did you mean 'quick'"),
                             (b"vendor: fake\ncases:\n  quick:pytorch:ship:1:1:1:\n", "campaign.yaml:3: .*no hardware 'ship'"),
                             (b"vendor: fake\nset: {seed: 1}\ncases:\n  quick:pytorch:chip:1:1:1:\n", "campaign.yaml:2: "),
                             (b"vendor: fake\ncases:\n  quick:pytorch:chip:1:1:1:\n  quick:pytorch:disc:1:1:1:\n",
                              "campaign.yaml:4: hardware 'disc' beside 'chip' of .*campaign.yaml:3"),
                             (b"\xff\x00{[", "campaign.yaml")):
            (self.folder / "campaign.yaml").write_bytes(text)
            done = self.assay("run", "campaign.yaml", expect=2)
            self.assertRegex(done.stderr, wanted)
        self.assay("run", "missing.yaml", expect=2)
        self.assertEqual(self.runs(), [])

    def test_stops_after_max_failures(self):
        self.write({"quick:pytorch:chip:1:1:4": {"set": {"what": "fail"}}}, max_failures=2)
        self.assay("run", "campaign.yaml", expect=1)
        outcomes = [end["outcome"] for end in self.ends().values()]
        self.assertEqual(outcomes.count("Error"), 2)
        self.assertEqual(outcomes.count("Skipped"), 3)  # two rounds and the judgement

    def test_applies_the_vendors_setup_and_variables(self):
        vendor = self.home / "vendors/fake"
        (vendor / "setup").write_text("#!/bin/sh\necho prepared by $WHO\n")
        (vendor / "setup").chmod(0o755)
        (vendor / "environment").write_text("# of every rank\nWHO=fake vendor\n")
        self.write({"quick:pytorch:chip:1:1:1": None})
        self.assay("run", "campaign.yaml")
        self.assertEqual((self.last_run() / "steps/1-setup/rank0.log").read_text(), "prepared by fake vendor\n")
        (vendor / "setup").write_text("#!/bin/sh\nexit 9\n")
        self.assay("run", "campaign.yaml", expect=1)
        self.assertEqual(self.ends()["quick-pytorch-chip-1x1"]["outcome"], "Skipped")
        (vendor / "setup").write_text("#!/bin/sh\nexec sleep 1000\n")
        self.write({"quick:pytorch:chip:1:1:1": None}, stall_limit=2)
        self.assay("run", "campaign.yaml", expect=1)
        self.assertEqual(self.ends()["setup"]["reason"], "stopped: no line and no record for 2.00 s")
        self.assert_nothing_runs()

    def test_reports_all_preflight_problems_at_once(self):
        (self.folder / "data").mkdir()
        (self.folder / "data/train.bin").write_text("changed")
        case = self.home / "cases/quick/case.yaml"
        whole = case.read_text()
        vendor = self.home / "vendors/fake/vendor.yaml"
        vendor.write_text(vendor.read_text().replace("FAKE_DEVICES, devices: 8", "FAKE_DEVICES, devices: [echo, '1']"))
        self.write({"quick:pytorch:chip:1:1:1": {"data": str(self.folder / "data")}})
        done = self.assay("run", "campaign.yaml", "--check")
        self.assertIn("preflight passed", done.stderr)
        case.write_text(whole.replace("layout: none}", f"layout: none, sha256: {{train.bin: {'f' * 64}}}}}")
                        .replace("[python3, run.py,", "[no-such-python, run.py, /no/such/file,"))
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.write({"quick:pytorch:chip:1:2:1": {"data": str(self.folder / "data")}}, master_port=port)
            for more in [], ["--check"]:
                done = self.assay("run", "campaign.yaml", *more, expect=4)
                for words in ("preflight found 5 problems", "train.bin is not the file it should be", f"port {port} is in use",
                              "1 chip devices, and 2 are needed", "no-such-python is no program in its PATH",
                              "/no/such/file does not exist"):
                    self.assertIn(words, done.stderr)
        self.assertEqual(self.runs(), [])

    def test_runs_a_corrected_case(self):
        self.check_put_right()

    def test_shows_logs_of_a_running_rank(self):
        gate = self.folder / "gate"
        self.write({"quick:pytorch:chip:1:2:1": {"set": {"what": "gate"}}}, environment={"GATE": str(gate)})
        process = self.start("run", "campaign.yaml")
        self.wait_for_log("rank 1 of 2")
        followers = [self.start("logs", "last", "-f", "--rank", rank) for rank in (0, 1)]
        self.assertIn("rank 1 of 2", followers[1].stdout.readline())
        self.assertIn("rank 0 of 2", followers[0].stdout.readline())
        self.assertIn("step 1 ", followers[0].stdout.readline())
        self.assertIsNone(process.poll(), "it was followed while it ran")
        gate.touch()
        said = [follower.communicate(timeout=120)[0] for follower in followers]
        self.assertEqual([follower.returncode for follower in followers], [0, 0])
        self.assertIn("accuracy 0.91", said[0])
        self.assertEqual(said[1], "")
        self.assertEqual(process.wait(60), 0)
        self.assertIn("rank 1 of 2", self.assay("logs", "last", "--rank", 1, "--step", "quick-pytorch-chip-1x2").stdout)
        self.assertIn("no such log", self.assay("logs", "last", "--rank", 2, "--step", "quick-pytorch-chip-1x2", expect=2).stderr)

    def test_drops_the_page_cache_where_allowed(self):
        said = {}
        for clear in True, False:
            self.write({"quick:pytorch:chip:1:1:1": None}, clear_caches=clear)
            self.assay("run", "campaign.yaml")
            said[clear] = next(self.last_run().glob("steps/*/supervisor.node0.log")).read_text()
        allowed = os.access("/proc/sys/vm/drop_caches", os.W_OK)
        self.assertIn("dropped the page cache" if allowed else "the page cache stays: ", said[True])
        self.assertNotIn("page cache", said[False])

    def test_marks_a_round_beside_other_work_suspect(self):
        self.write({"quick:pytorch:chip:1:1:1": {"set": {"count": 60}}})
        busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * os.cpu_count())]
        try:
            self.assay("run", "campaign.yaml")
        finally:
            for process in busy:
                process.kill()
                process.wait()
        step = self.last_run() / "steps/1-quick-pytorch-chip-1x1"
        self.assertNotEqual(json.loads((step / "disturbance.json").read_text())["suspect"], [])
        self.assertIn("is suspect", self.assay("table", "last").stdout)


class CrashTest(CampaignTest):
    def test_reattaches_to_what_still_runs(self):
        self.write({"quick:pytorch:chip:1:2:1": {"set": {"count": 60}}}, lease=60)
        process = self.start("run", "campaign.yaml")
        self.wait_for_log("step 5 ")
        process.kill()
        process.wait()
        time.sleep(0.5)
        done = self.assay("resume", "last")
        self.assertIn("going on with it", done.stderr)
        self.check_whole(self.last_run())
        step = self.last_run() / "steps/1-quick-pytorch-chip-1x2"
        steps = re.findall(r"^step ([0-9]+) ", (step / "rank0.log").read_text(), re.M)
        self.assertEqual([int(s) for s in steps], list(range(1, 61)))  # each once: it never began again
        self.assertEqual(json.loads((step / "status.json").read_text())["attempt"], 1)

    def test_stops_when_the_lease_expires(self):
        self.write({"quick:pytorch:chip:1:2:1": {"set": {"what": "hang"}}}, lease=6)
        process = self.start("run", "campaign.yaml")
        self.wait_for_log("step 2 ")
        process.kill()
        process.wait()
        self.assert_nothing_runs()
        self.assertEqual(json.loads(self.assay("ps", "--json").stdout)[0]["state"], "interrupted")

    def test_stops_from_another_terminal(self):
        self.write({"quick:pytorch:chip:1:1:1": {"set": {"what": "hang"}}})
        process = self.start("run", "campaign.yaml")
        self.wait_for_log("step 2 ")
        running = json.loads(self.assay("ps", "--json").stdout)[0]
        self.assertEqual((running["state"], running["at_work"]), ("running", ["quick-pytorch-chip-1x1"]))
        self.assay("stop", "last")
        self.assertEqual(process.wait(60), 130)
        self.assert_nothing_runs()

    def test_stops_after_the_controller_was_killed(self):
        self.write({"quick:pytorch:chip:1:1:1": {"set": {"what": "hang"}}}, lease=600)
        process = self.start("run", "campaign.yaml")
        self.wait_for_log("step 2 ")
        process.kill()
        process.wait()
        self.assertIn("stopped 1 step", self.assay("stop", "last").stderr)
        self.assert_nothing_runs()

    def test_ends_the_ranks_of_a_killed_supervisor(self):
        self.write({"quick:pytorch:chip:1:1:1": {"set": {"what": "hang"}}}, retries=0)
        process = self.start("run", "campaign.yaml")
        self.wait_for_log("step 2 ")
        state = json.loads(next(self.last_run().glob("steps/*/state.node0.json")).read_text())
        os.kill(state["pid"], signal.SIGKILL)
        self.assertEqual(process.wait(60), 4)
        self.assertTrue(self.ends()["quick-pytorch-chip-1x1"]["infrastructure"])
        self.assert_nothing_runs()


class ResumeTest(CampaignTest):
    """Before a run goes on its hosts are looked at as before it began, for what is yet to be done."""

    def interrupted(self, **more):
        """A run that was stopped in its only case, which ends when the gate is there."""
        self.gate = self.folder / "gate"
        self.write({"quick:pytorch:chip:1:1:1": {"set": {"what": "gate"}}}, environment={"GATE": str(self.gate)}, **more)
        known = set(self.runs())
        process = self.start("run", "campaign.yaml")
        self.wait_until("a new run", lambda: set(self.runs()) - known)
        run = (set(self.runs()) - known).pop()
        self.wait_for_step_2(run)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 130)
        return run

    def wait_for_step_2(self, run):
        self.wait_until("step 2", lambda: any("step 2 " in path.read_text() for path in run.glob("steps/*/rank0.log")))

    def test_names_vanished_data_and_starts_nothing(self):
        gate, done, open_data = self.folder / "gate", self.folder / "done", self.folder / "open"
        done.mkdir()
        open_data.mkdir()
        self.write({"quick:pytorch:chip:1:1:1": {"data": str(done)},
                    "quick:pytorch:chip:1:2:2": {"data": str(open_data), "set": {"what": "gate"}}},
                   environment={"GATE": str(gate)}, lease=6)
        process = self.start("run", "campaign.yaml")
        self.wait_until("the second case", lambda: self.runs() and list(self.runs()[0].glob("steps/*-1x2-r1/rank1.log")))
        process.kill()
        process.wait()
        run = self.last_run()
        self.assert_nothing_runs(run)  # its lease has ended
        shutil.rmtree(done)  # of a case that has ended: nobody needs it
        shutil.rmtree(open_data)
        before = (run / "journal.jsonl").read_bytes()
        for _ in range(2):  # and it can be resumed again
            said = self.assay("resume", "last", expect=4).stderr
            self.assertIn("nothing was started, preflight found 1 problem", said)
            self.assertIn(f"data {open_data}: does not exist", said)
            self.assertNotIn(str(done), said)
            self.assertEqual((run / "journal.jsonl").read_bytes(), before)
        self.assert_nothing_runs(run)
        open_data.mkdir()
        gate.touch()
        self.assay("resume", "last")
        self.check_whole(run)

    def test_ignores_its_own_running_step_in_preflight(self):
        gate, data = self.folder / "gate", self.folder / "data"
        data.mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.write({"quick:pytorch:chip:1:2:1": {"data": str(data), "set": {"what": "gate"}}, "quick:pytorch:chip:1:2:2": None,
                    "quick:pytorch:chip:1:1:1": None}, environment={"GATE": str(gate)}, lease=60, master_port=port)
        process = self.start("run", "campaign.yaml")
        self.wait_for_log("step 2 ")
        process.kill()
        process.wait()
        shutil.rmtree(data)  # the step that runs has read it
        with socket.socket() as taken:  # as by a rank of the step that runs
            taken.bind(("127.0.0.1", port))
            taken.listen()
            process = self.start("resume", "last")
            self.assertIn("going on with it", process.stderr.readline())
        gate.touch()
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, out + err)
        run = self.last_run()
        self.check_whole(run)
        first = json.loads((run / "steps/1-quick-pytorch-chip-1x2/status.json").read_text())
        self.assertEqual(first["attempt"], 1, "it was taken over")

    def test_names_the_run_that_holds_a_device(self):
        mine = self.interrupted()
        other = self.start("run", "campaign.yaml")
        self.wait_until("another run", lambda: len(self.runs()) == 2)
        holder = (set(self.runs()) - {mine}).pop()
        self.wait_for_step_2(holder)
        said = self.assay("resume", mine.name, expect=4).stderr
        self.assertIn(f"is in use by run {holder.name}", said)
        self.gate.touch()
        self.assertEqual(other.wait(120), 0)
        self.assay("resume", mine.name)
        self.check_whole(mine)

    def test_resumes_a_run_of_an_earlier_version(self):
        run = self.interrupted()
        file = run / "preflight.json"
        whole = json.loads(file.read_text())
        self.assertEqual((whole["hardware"], list(whole["data"])), ("chip", [str(self.home)]))
        self.gate.touch()
        file.write_text("{}")
        self.assertIn("preflight.json", self.assay("resume", run.name, expect=2).stderr)
        file.unlink()
        self.assertIn("the run has no preflight.json", self.assay("resume", run.name).stderr)
        self.check_whole(run)


class RealCasesTest(CampaignTest):
    def test_runs_a_native_case_beside_a_pytorch_script(self):
        source = os.environ.get("ASSAY_SOURCE", ".")
        (self.folder / "campaign.yaml").write_text(json.dumps({
            "campaign": "both", "vendor": "cpu", "division": "open", "cases": {
                "fashion_ddp:pytorch:cpu:1:2:1": {"data": FASHION, "set": {"steps": 60}},
                "simplenet:libtorch:cpu:1:2:1": {"data": FASHION, "set": {"Engine.max_steps": 20, "Engine.logging_freq": 5}}}}))
        self.assay("run", "campaign.yaml", ASSAY_HOME=source)
        table = self.assay("table", "last", ASSAY_HOME=source).stdout
        self.assertIn("fashion\\_ddp", table)
        self.assertIn("simplenet", table)
        results = json.loads(self.assay("report", "last", "--json", ASSAY_HOME=source).stdout)["results"]
        for result in results:
            self.assertGreater(result["final_accuracy"], 0.3, result)
            self.assertGreater(result["p_train"], 0, result)
            self.assertGreater(result["step_time"]["p50"], 0, result)


if __name__ == "__main__":
    unittest.main()
