"""assay table, history and diff over run folders made by formulas: many rounds, failures, disturbances, garbage."""
import json
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from results_data import Campaign, noisy, result_record, step_records  # noqa: E402
from support import ASSAY, CliTest  # noqa: E402

ONE = "simplenet:libtorch:cpu:1:1:5"
FOUR = "simplenet:libtorch:cpu:1:4:5"
BASE, NEW = "20261115-080000-base-0001", "20261116-080000-new-0002"


class ResultsTest(CliTest):
    def campaign(self, name=BASE, start=0, throughput=1000, spread=0.01, count=5, seed=1):
        return Campaign(name, start).rounds(ONE, noisy(throughput, count, spread, seed))

    def write(self, campaign):
        return campaign.write(self.folder / "runs")

    def json(self, *arguments, expect=0):
        return json.loads(self.assay(*arguments, "--json", expect=expect).stdout)


class TableTest(ResultsTest):
    def test_shows_means_intervals_and_scaling(self):
        values = noisy(1000, 5, 0.01, 1)
        self.write(self.campaign().rounds(FOUR, noisy(3400, 5, 0.01, 2), nproc=4))
        text = self.assay("table").stdout
        self.assertIn("| config | precision | fix_hp | e2e_time | p_whole | p_train | p_core | acc | mem(used/total) | MFU |", text)
        rows = [line for line in text.splitlines() if line.startswith(f"| {ONE}")]
        self.assertIn("1.00 GiB / 64.0 GiB", rows[0])
        self.assertIn("images/s", rows[0])
        self.assertTrue(rows[0].endswith("| - |"), "no MFU without a peak")
        self.assertIn("efficiency = (throughput of N processes / throughput of B processes) / (N / B)", text)
        self.assertIn("MFU = FLOPs of a sample", text)
        table = self.json("table", "last")
        figure = table["cases"][0]["figures"]["p_train"]
        self.assertEqual(figure["n"], 5)
        self.assertAlmostEqual(figure["mean"], statistics.mean(values), places=9)
        self.assertAlmostEqual(figure["standard_deviation"], statistics.stdev(values), places=9)
        half = 2.7764451051977987 * statistics.stdev(values) / 5 ** 0.5
        self.assertAlmostEqual(figure["ci95_high"] - figure["mean"], half, places=9)
        self.assertAlmostEqual(figure["olympic_mean"], statistics.mean(sorted(values)[1:-1]), places=9)
        self.assertIsNone(table["cases"][0]["figures"]["mfu"])
        points = table["scaling"][0]["points"]
        self.assertEqual([p["nproc"] for p in points], [1, 4])
        self.assertAlmostEqual(points[1]["efficiency"], points[1]["throughput"] / (4 * points[0]["throughput"]), places=12)

    def test_reports_left_out_rounds(self):
        campaign = self.campaign()
        campaign.add(ONE, 6, [], outcome="Error", reason="rank 0: exit code 1: out of <b>luck</b>")
        campaign.add(ONE, 7, [result_record(10)], disturbance={"suspect": ["steal was 31 %"], "summary": {"steal": 0.31}})
        self.write(campaign)
        text = self.assay("table").stdout
        self.assertIn("round 6 did not pass (Error: rank 0: exit code 1", text)
        self.assertIn("round 7 is suspect and left out: steal was 31 %", text)
        self.assertNotIn("<b>", text)
        case = self.json("table")["cases"][0]
        self.assertEqual((case["rounds"], case["counted"], case["failed"], case["suspect"]), (7, 5, 1, 1))
        self.assertGreater(case["figures"]["p_train"]["min"], 900)

    def test_publishes_no_garbage(self):
        finished = {"e2e_time": 12.5, "training_sequences_per_second": 44.5, "final_mlm_accuracy": "80.83.2%", "MFU": 0.93}
        campaign = Campaign(BASE)
        campaign.add("bert:pytorch_1.13:cpu:1:1:1", 1, [{"type": "event", "time_us": 5, "name": "FINISHED", "data": finished}])
        campaign.add("glm:pytorch:cpu:1:1:1", 1, "\x00\x01 not a record\n{\"type\": 7}\n{}\n", seconds=21.0)
        campaign.add("gpt:pytorch:cpu:1:1:1", 1, [result_record(5, accuracy="NaN", p_train="fast", e2e_time=-1)])
        self.write(campaign)
        text = self.assay("table").stdout
        rows = {line.split(" ")[1]: line for line in text.splitlines() if line.startswith("| ") and ":cpu:" in line}
        bert = rows["bert:pytorch\\_1.13:cpu:1:1:1"]
        self.assertIn("44.500 sequences/s", bert)
        self.assertNotIn("80.83", bert)
        self.assertNotIn("93", bert)
        self.assertIn("'80.83.2%' is not a number; left out", text)
        self.assertIn("peak", text)
        self.assertIn("| 21 |", rows["glm:pytorch:cpu:1:1:1"], "the wall time is known all the same")
        self.assertIn("its records are left out", text)
        self.assertNotIn("NaN", rows["gpt:pytorch:cpu:1:1:1"])
        self.assertNotIn("fast", rows["gpt:pytorch:cpu:1:1:1"])

    def test_leaves_the_warm_up_out_of_step_times(self):
        self.write(Campaign(BASE).add(ONE, 1, step_records(0.1, 40, slow=(0, 1, 2, 3, 39)) + [result_record(100)]))
        figures = self.json("table")["cases"][0]["figures"]
        self.assertAlmostEqual(figures["step_time_p50"]["mean"], 0.1, places=9)
        self.assertAlmostEqual(figures["step_time_p99"]["mean"], 0.1 + 0.65 * 0.9, places=9)  # rank 34.65 of 0 to 35
        self.assertAlmostEqual(figures["jitter"]["mean"], 0.65 * 9, places=9)

    def test_shows_several_runs_and_nothing_measured(self):
        self.write(self.campaign())
        self.write(self.campaign(NEW, 86400))
        self.assertEqual(self.json("table", BASE, "last")["cases"][0]["rounds"], 10)
        self.write(Campaign("20261117-080000-none-0003"))
        self.assertIn("has measured a case", self.assay("table", "last", expect=3).stderr)
        self.assertIn("did you mean", self.assay("table", "20261115-080000-base-0002", expect=2).stderr)
        self.assay("table", "last", "--markdown", "--json", expect=2)


class HistoryTest(ResultsTest):
    def test_prints_the_requested_report_format(self):
        self.write(self.campaign())
        for name, begin, file in [("markdown", "# Pass: ", "report.md"), ("junit", "<?xml", "junit.xml"),
                                  ("html", "<!DOCTYPE html>", "report.html"), ("json", "{", "result.json")]:
            printed = self.assay("report", BASE, "--format", name).stdout
            self.assertTrue(printed.startswith(begin), printed[:200])
            self.assertEqual(printed, (self.folder / "runs" / BASE / file).read_text())
        self.assertIn("Steps", self.assay("report", BASE, "--format", "terminal").stdout)
        self.assertEqual(self.json("report", BASE), json.loads(self.assay("report", BASE, "--format", "json").stdout))
        self.assertIn("did you mean 'markdown'", self.assay("report", BASE, "--format", "markdwon", expect=2).stderr)

    def test_is_filled_by_every_report_and_asked_by_parts_of_the_key(self):
        self.write(self.campaign())
        self.write(self.campaign(NEW, 86400).rounds(FOUR, [3000, 3100, 3200], nproc=4))
        self.assay("report", BASE)
        self.assay("report", BASE)
        self.assertTrue((self.folder / "runs/results.sqlite").exists())
        self.assertEqual(len(self.json("history", ONE)["results"]), 5, "the other run is not stored yet, this one once")
        self.assay("report", NEW, expect=0)
        history = self.json("history", "simplenet")
        self.assertEqual(len(history["results"]), 13)
        first = history["results"][0]
        self.assertEqual((first["run"], first["round"], first["hosts"]), (BASE, 1, ["bench-01"]))
        self.assertEqual(first["system"], "Test CPU 9000, 64 cores")
        self.assertEqual(first["environment"]["host"]["kernel"], "6.1.0")
        self.assertIsNone(first["mfu"])
        self.assertEqual(len(self.json("history", "simplenet", "--limit", 2)["results"]), 2)
        self.assertIn("of 10 rounds count", self.assay("history", ONE).stdout)
        self.assertIn(FOUR, self.assay("history").stdout)
        with sqlite3.connect(self.folder / "runs/results.sqlite") as db:
            self.assertEqual(db.execute("SELECT COUNT(*), MIN(p_train) > 900 FROM results WHERE nproc = 1").fetchone(), (10, 1))

    def test_explains_an_unknown_case(self):
        self.write(self.campaign())
        done = self.assay("history", "simplnet", expect=2)
        self.assertIn("did you mean 'simplenet'", done.stderr)

    def test_rebuilds_the_store(self):
        run = self.write(self.campaign())
        self.write(self.campaign(NEW, 86400))
        self.assertEqual(len(self.json("history", ONE)["results"]), 10, "a store that is not there is made")
        store = self.folder / "runs/results.sqlite"
        store.write_bytes(b"not a database at all" * 200)
        done = self.assay("history", ONE, expect=2)
        self.assertIn("results.sqlite", done.stderr)
        self.assertIn("assay history --rebuild", done.stderr)
        shutil.rmtree(run)
        done = self.assay("history", ONE, "--rebuild", "--json")
        self.assertEqual(len(json.loads(done.stdout)["results"]), 5, "what has no folder any more is gone")
        self.assertEqual(len(list((self.folder / "runs").glob("results.sqlite.damaged-*"))), 1)

    def test_reports_despite_a_damaged_store(self):
        self.write(self.campaign())
        (self.folder / "runs/results.sqlite").write_bytes(b"not a database at all" * 200)
        done = self.assay("report", "last")
        self.assertIn("not in the store", done.stderr)
        self.assertTrue((self.folder / "runs" / BASE / "result.json").exists())

    def test_accepts_several_writers_at_once(self):
        for i in range(4):
            self.write(self.campaign(f"2026111{i}-080000-many-000{i}", 86400 * i))
        processes = [self.start("-q", "report", f"2026111{i % 4}") for i in range(12)]
        for process in processes:
            _, err = process.communicate(timeout=120)
            self.assertEqual((process.returncode, err), (0, ""))
        self.assertEqual(len(self.json("history", ONE)["results"]), 20)

    def test_stores_a_new_run(self):
        """What `assay train` and `assay demo` leave: the case in the plan; only the training is a measurement."""
        run = Campaign(BASE, case="simplenet").add("", 0, [result_record(500)])
        run.add("", 0, [result_record(7, e2e_time=1.0)], kind="evaluate")
        self.write(run)
        self.assay("report", "last")
        results = self.json("history", "simplenet")["results"]
        self.assertEqual([(r["case"], r["round"], r["p_train"]) for r in results], [("simplenet", 0, 500)])
        shown = json.loads((self.folder / "runs" / BASE / "result.json").read_text())["results"]
        self.assertEqual([r["step"] for r in shown], ["case1", "case2"], "a report shows both")


class DiffTest(ResultsTest):
    def test_fails_for_a_slower_run(self):
        self.write(self.campaign())
        self.write(self.campaign(NEW, 86400, throughput=900, seed=3))
        text = self.assay("diff", BASE, NEW, expect=1).stdout
        self.assertIn("slower, beyond 5 %", text)
        diff = self.json("diff", BASE, NEW, expect=1)
        figure = diff["cases"][0]["figures"][0]
        self.assertEqual((figure["figure"], figure["change"], figure["regression"]), ("p_train", "worse", True))
        self.assertLess(figure["p_value"], 0.001)
        self.assertLess(figure["effect_size"], -5)
        self.assertAlmostEqual(figure["relative"], -0.1, delta=0.01)
        self.assay("diff", NEW, BASE, expect=0)

    def test_passes_equal_runs_and_reports_unclear_ones(self):
        self.write(self.campaign())
        self.write(self.campaign(NEW, 86400, seed=5))
        self.assertIn("no difference shown", self.assay("diff", BASE, NEW).stdout)
        self.write(self.campaign("20261117-080000-wild-0003", 2 * 86400, throughput=900, spread=0.4, seed=6))
        text = self.assay("diff", BASE, "20261117").stdout
        self.assertIn("inconclusive", text)
        self.assertIn("more rounds", text)

    def test_claims_nothing_from_one_round_each(self):
        self.write(self.campaign(count=1))
        self.write(self.campaign(NEW, 86400, throughput=100, count=1))
        done = self.assay("diff", BASE, NEW, expect=3)
        self.assertIn("inconclusive", done.stdout)
        self.assertNotIn("slower", done.stdout)

    def test_applies_thresholds(self):
        self.write(self.campaign())
        self.write(self.campaign(NEW, 86400, throughput=900, seed=3))
        file = self.folder / "thresholds.yaml"
        file.write_text("default: {p_train: 2}\ncpu: {p_train: 20}\n")
        self.assay("diff", BASE, NEW, "--thresholds", file, expect=0)
        file.write_text("default: {p_train: 20}\nbench-01: {p_train: 3}\n")
        self.assay("diff", BASE, NEW, "--thresholds", file, expect=1)
        file.write_text("default:\n  p_trian: 3\n")
        done = self.assay("diff", BASE, NEW, "--thresholds", file, expect=2)
        self.assertIn("thresholds.yaml:2", done.stderr)
        self.assertIn("did you mean 'p_train'", done.stderr)

    def test_compares_with_the_history(self):
        for i in range(2):
            self.write(self.campaign(f"2026111{i}-080000-old-000{i}", 86400 * i, count=3, seed=10 + i))
        self.write(self.campaign("20261120-080000-now-0009", 86400 * 9, throughput=800, count=3, seed=20))
        diff = self.json("diff", "last", expect=1)
        self.assertEqual(diff["baseline"], "history")
        self.assertEqual(diff["cases"][0]["figures"][0]["baseline"]["n"], 6)

    def test_reports_a_case_that_no_longer_passes(self):
        self.write(self.campaign())
        self.write(Campaign(NEW, 86400).add(ONE, 1, [], outcome="Error", reason="exit code 1"))
        self.assertIn("no round passed", self.assay("diff", BASE, NEW, expect=1).stdout)

    def test_explains_nothing_in_common_and_the_same_run(self):
        self.write(self.campaign())
        self.write(Campaign(NEW, 86400).rounds(FOUR, [1, 2, 3], nproc=4))
        self.assay("diff", BASE, NEW, expect=3)
        self.assay("diff", BASE, BASE, expect=2)
        self.assay("diff", BASE, "nowhere", expect=2)


class CompletionTest(ResultsTest):
    def complete(self, *words):
        done = subprocess.run([ASSAY, "__complete", *words], cwd=self.folder, env=self.environment(), capture_output=True,
                              text=True, timeout=60)
        return done.stdout.splitlines()

    def test_finds_runs_and_cases(self):
        self.write(self.campaign())
        self.assertEqual(self.complete("table", "2026"), [BASE])
        self.assertEqual(self.complete("history", ""), [])
        self.assertFalse((self.folder / "runs/results.sqlite").exists(), "asking makes nothing")
        self.assay("history", "--rebuild")
        self.assertEqual(self.complete("history", "simp"), [ONE])
        self.assertIn("--thresholds", self.complete("diff", "--th"))


if __name__ == "__main__":
    unittest.main()
