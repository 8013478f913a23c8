"""The demo as a user runs it: one real run, and what its folder must hold."""
import json
import os
import pty
import subprocess
import unittest
import xml.etree.ElementTree as xml

from support import ASSAY, SLOWER, CliTest, json_lines

# A short training: the way is the same, only the target is lower.
SHORT = ["--case", "simplenet", "--set", "Engine.num_train_epochs=1", "--set", "target.value=0.7"]


class Demo(CliTest):
    @unittest.skipIf(SLOWER > 1, "too slow with sanitizers; the other tests go the same way with fewer pictures")
    def test_passes_the_default_demo(self):
        done = self.assay("demo", timeout=2000)  # a minute when it has the machine for itself
        self.assertIn("Pass", done.stdout)
        self.assertNotIn("\x1b", done.stdout + done.stderr, "no colours outside a terminal")
        run = self.runs()[0]
        for name in ["plan.json", "journal.jsonl", "environment.json", "result.json", "report.html", "report.md", "junit.xml"]:
            self.assertTrue((run / name).stat().st_size > 0, name)
        for step in ["1-train", "2-evaluate", "3-export", "4-infer"]:
            for name in ["command.json", "status.json", "rank0.log", "records.jsonl", "config.json"]:
                self.assertTrue((run / "steps" / step / name).stat().st_size > 0, f"{step}/{name}")
        result = json.loads((run / "result.json").read_text())
        self.assertEqual(result["outcome"], "Pass")
        accuracy = [r["final_accuracy"] for r in result["results"] if r.get("final_accuracy") is not None]
        self.assertTrue(accuracy and all(0.90 <= a < 1 for a in accuracy), accuracy)
        suite = xml.parse(run / "junit.xml").getroot()
        self.assertTrue(list(suite.iter("testcase")))
        self.assertFalse(list(suite.iter("failure")))
        verdicts = json.loads((run / "steps/5-verify/verdicts.json").read_text())
        self.assertEqual([v["outcome"] for v in verdicts], ["Pass"] * 5)
        self.assertEqual([s["step"] for s in json_lines(run / "journal.jsonl") if s["event"] == "step_ended"],
                         ["train", "evaluate", "export", "infer", "verify"])

    def test_prints_the_plan_in_a_dry_run(self):
        done = self.assay("demo", "--dry-run")
        for word in ["1. train", "2. evaluate", "3. export", "4. infer", "5. verify", "assay-worker train"]:
            self.assertIn(word, done.stdout)
        plan = json.loads(self.assay("demo", "--dry-run", "--json").stdout)
        self.assertEqual([s["name"] for s in plan["steps"]], ["train", "evaluate", "export", "infer", "verify"])
        self.assertEqual(self.runs(), [])

    def test_fails_with_1_for_a_missed_target(self):
        done = self.assay("demo", *SHORT, "--set", "target.value=0.999", "--json", expect=1)
        result = json.loads(done.stdout)
        self.assertEqual(result["outcome"], "Fail")
        failed = [v for v in result["verdicts"] if v["outcome"] == "Fail"]
        self.assertEqual(len(failed), 1)
        self.assertIn("target", failed[0]["name"])

    def test_catches_a_broken_export(self):
        """Evidence is what counts: with predictions of another model the verdict turns."""
        self.assay("demo", *SHORT, "-q")
        run = self.runs()[0]
        predictions = run / "steps/4-infer/output/predictions.safetensors"
        content = bytearray(predictions.read_bytes())
        header = int.from_bytes(content[:8], "little")
        for i in range(8 + header, 8 + header + 4000):
            content[i] = 0
        predictions.write_bytes(content)
        # Take back the verdict, as if the controller had been killed before it.
        journal = (run / "journal.jsonl").read_text().splitlines(True)
        kept = [line for line in journal if '"verify"' not in line and "run_ended" not in line]
        (run / "journal.jsonl").write_text("".join(kept))
        done = self.assay("resume", "last", expect=1)
        self.assertIn("Fail", done.stdout)

    def test_uses_colours_and_a_progress_bar_on_a_terminal(self):
        parent, child = pty.openpty()
        process = subprocess.Popen([ASSAY, "demo", *SHORT], cwd=self.folder, env=self.environment(TERM="xterm"),
                                   stdin=subprocess.DEVNULL, stdout=child, stderr=child)
        os.close(child)
        output = b""
        while True:
            try:
                part = os.read(parent, 65536)
            except OSError:
                break
            if not part:
                break
            output += part
        os.close(parent)
        self.assertEqual(process.wait(), 0, output.decode())
        self.assertIn(b"\x1b[32m", output, "green for Pass")
        self.assertIn(b"steps/s", output)
        self.assertIn(b"\r\x1b[K", output, "the bar redraws its line")
        self.assertIn(b"left", output)

    def test_respects_no_color_on_a_terminal(self):
        parent, child = pty.openpty()
        done = subprocess.run([ASSAY, "cases"], cwd=self.folder, env=self.environment(TERM="xterm", NO_COLOR="1"), stdout=child)
        os.close(child)
        self.assertEqual(done.returncode, 0)
        self.assertNotIn(b"\x1b[", os.read(parent, 65536))
        os.close(parent)


if __name__ == "__main__":
    unittest.main(verbosity=2)
