"""Cases that are commands of other people: where they stand, what they leave behind, and what they find."""
import json
import unittest

from campaign_support import CampaignTest
from support import processes_with

CASE = """model: quick
framework: pytorch
task: nothing
source: this test
licence: Apache-2.0
entry: [python3, run.py, "{output}", "--settings={case_dir}/settings.txt"]
data: {name: none, layout: none}
target: {metric: accuracy, value: 0.9, goal: maximize}
config:
  patterns:
    - {match: "^accuracy ([^ ]+)", names: [final_accuracy], kind: result}
"""
STEP = "steps/1-quick-pytorch-chip-1x1"


class CommandCaseTest(CampaignTest):
    def write_case(self, script, nproc=1, repeat=1, **more):
        (self.home / "cases/quick/case.yaml").write_text(CASE)
        (self.home / "cases/quick/settings.txt").write_text("settings of the case\n")
        (self.home / "cases/quick/run.py").write_text(script + "\nprint('accuracy 0.91', flush=True)\n")
        self.write({f"quick:pytorch:chip:1:{nproc}:{repeat}": None}, **more)

    def test_files_in_the_working_folder_do_not_touch_the_evidence(self):
        self.write_case("""
for name in "plan.json", "journal.jsonl", "environment.json", "versions.json", "result.json", "status.json", "records.jsonl":
    open(name, "w").write('{"processor": "H200 x 8"}')
""")
        self.assay("run", "campaign.yaml")
        run = self.last_run()
        self.assertEqual(self.ends()["quick-pytorch-chip-1x1"]["outcome"], "Pass")
        self.assertTrue((run / STEP / "work/attempt1/rank0/plan.json").exists())
        self.assertNotIn("H200", self.assay("report", "last", "--json").stdout)
        self.assertIn("schema", json.loads((run / "plan.json").read_text()))
        self.check_whole(run)

    def test_every_rank_and_round_has_a_folder_of_its_own(self):
        self.write_case("""
import os, sys
assert os.listdir(".") == [], os.listdir(".")
open("checkpoint", "w").close()
assert os.path.isabs(sys.argv[1]) and os.path.isdir(sys.argv[1])
assert open(sys.argv[2].split("=")[1]).read() == "settings of the case\\n"
assert open(os.path.join(os.environ["ASSAY_CASE_DIR"], "settings.txt")).read() == "settings of the case\\n"
assert os.path.isfile(os.environ["ASSAY_CASE_CONFIG"]) and os.environ["ASSAY_CASE_OUTPUT"] == sys.argv[1]
""", nproc=2, repeat=2)
        self.assay("run", "campaign.yaml")
        folders = sorted(str(path.relative_to(self.last_run())) for path in self.last_run().glob("steps/*/work/*/*"))
        step = "quick-pytorch-chip-1x2"
        self.assertEqual(folders, [f"steps/{round}-{step}-r{round}/work/attempt1/rank{rank}" for round in (1, 2) for rank in (0, 1)])

    def test_an_attempt_that_is_repeated_begins_in_an_empty_folder(self):
        gate = self.folder / "gate"
        self.write_case(f"""
import os, sys
assert os.listdir(".") == [], os.listdir(".")
open("checkpoint", "w").close()
if not os.path.exists({str(gate)!r}): sys.exit(7)
""")
        self.assay("run", "campaign.yaml", expect=1)
        gate.touch()
        self.assay("resume", "last", "--retry-failed")
        self.assertTrue((self.last_run() / STEP / "work/attempt1/rank0/checkpoint").exists())
        self.assertTrue((self.last_run() / STEP / "work/attempt2/rank0/checkpoint").exists())

    def test_what_a_rank_leaves_running_is_ended_and_named(self):
        for session in False, True:
            for code in 0, 3:
                with self.subTest(session=session, code=code):
                    self.write_case(f"""
import subprocess, sys
subprocess.Popen(["sleep", "7555"], start_new_session={session})
if {code}: sys.exit({code})
""")
                    done = self.assay("run", "campaign.yaml", expect=1 if code else 0)
                    end = self.ends()["quick-pytorch-chip-1x1"]
                    self.assertEqual(len(end["remarks"]), 1, end)
                    self.assertRegex(end["remarks"][0], r"rank 0 left 1 process running, which was ended: sleep \([0-9]+\)")
                    self.assertIn("left 1 process running", done.stdout + done.stderr)
                    self.assertEqual(processes_with(self.last_run().name), [])  # at once: its devices are free again

    def test_children_of_a_launcher_that_is_killed_are_ended(self):
        self.write_case("""
import os, signal, subprocess
for rank in range(2): subprocess.Popen(["sleep", "7556"], start_new_session=True)
os.kill(os.getpid(), signal.SIGKILL)
""")
        self.assay("run", "campaign.yaml", expect=1)
        end = self.ends()["quick-pytorch-chip-1x1"]
        self.assertIn("killed by signal 9", end["reason"])
        self.assertIn("rank 0 left 2 processes running", end["remarks"][0])
        self.assertEqual(processes_with(self.last_run().name), [])

    def test_a_case_that_leaves_nothing_has_no_remark(self):
        self.write_case("import multiprocessing as m\nm.Process(target=print).start()")
        self.assay("run", "campaign.yaml")
        self.assertNotIn("remarks", self.ends()["quick-pytorch-chip-1x1"])


if __name__ == "__main__":
    unittest.main()
