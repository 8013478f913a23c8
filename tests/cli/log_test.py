"""assay log convert and assay log show as a user meets them."""
import json
import signal
import time
import unittest

from support import CliTest, json_lines

DLLL = ('DLLL {"timestamp": "1794771785.339754", "datetime": "2026-11-15 19:43:05.339754+00:00", "elapsedtime": "7e-06", '
        '"type": "LOG", "step": [0, 5], "data": {"loss": 0.1, "speed": 10.0}}\n')
PERFLOG = ('[PerfLog] {"event": "TRAIN_END", "value": {"loss": NaN}, "metadata": {"file": "run.py", "lineno": 7, '
           '"time_ms": 1794771786000, "rank": 0}}\n')
WRITABLE = ["assay", "dllogger", "dllogger-text", "tcap", "tcap-text", "perflog", "mllog"]
LOSSLESS = ["assay", "dllogger", "tcap", "perflog", "mllog"]


class Convert(CliTest):
    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def test_writes_every_dialect(self):
        self.write("a.log", "hello\n" + DLLL + PERFLOG)
        for dialect in WRITABLE:
            done = self.assay("log", "convert", "a.log", "--to", dialect)
            self.assertIn("0.1", done.stdout, dialect)
            self.assertIn("1 dllogger", done.stderr)
            self.assertIn("1 unknown (kept as messages)", done.stderr)

    def test_round_trips_through_chains(self):
        self.write("a.log", DLLL)
        for first in LOSSLESS:
            for second in LOSSLESS:
                self.assay("log", "convert", "a.log", "--to", first, "-o", "b.log")
                self.assay("log", "convert", "b.log", "--to", second, "-o", "c.log")
                self.assay("log", "convert", "c.log", "--to", "dllogger", "-o", "d.log")
                self.assertEqual((self.folder / "d.log").read_text(), DLLL, (first, second))

    def test_writes_valid_json_for_any_input(self):
        self.write("a.log", PERFLOG)
        done = self.assay("log", "convert", "a.log", "--to", "assay", "-o", "a.jsonl")
        self.assertEqual(done.stdout, "")
        [record] = json_lines(self.folder / "a.jsonl")
        self.assertEqual(record["data"], {"loss": "NaN"})
        self.assertEqual(record["time_us"], 1794771786000000)

    def test_names_the_damaged_line_and_writes_nothing(self):
        self.write("a.log", "x\n" + DLLL + 'DLLL {"timestamp": \n' + DLLL)
        self.write("out.log", "old content")
        done = self.assay("log", "convert", "a.log", "--to", "mllog", "-o", "out.log", expect=2)
        self.assertIn("a.log:3: ", done.stderr)
        self.assertEqual((self.folder / "out.log").read_text(), "old content")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a.log", "out.log"])
        done = self.assay("log", "convert", "a.log", "--to", "assay", "--keep-damaged", "--skip-unknown")
        self.assertEqual(len(done.stdout.splitlines()), 2)
        self.assertIn("1 damaged (skipped)", done.stderr)

    def test_explains_wrong_use(self):
        self.write("a.log", DLLL)
        self.write("empty.log", "")
        for arguments, code, text in [
            (["a.log", "--to", "dlloger"], 2, "did you mean 'dllogger'?"),
            (["a.log", "--to", "fleetx"], 2, "can only be read"),
            (["a.log", "--to", "assay", "--from", "x"], 2, "unknown log dialect 'x'"),
            (["a.log"], 2, "--to"),
            (["missing.log", "--to", "assay"], 2, "missing.log"),
            ([".", "--to", "assay"], 2, "is a folder"),
            (["empty.log", "--to", "assay"], 3, "empty.log: no record in it"),
            (["a.log", "--to", "assay", "-o", "no/such/folder/x"], 4, "no/such/folder/x"),
        ]:
            done = self.assay("log", "convert", *arguments, expect=code)
            self.assertIn(text, done.stderr, arguments)
            self.assertEqual(done.stdout, "")

    def test_reads_one_dialect_only_with_from(self):
        self.write("a.log", DLLL + PERFLOG)
        done = self.assay("log", "convert", "a.log", "--from", "perflog", "--to", "assay", "--skip-unknown")
        self.assertEqual([json.loads(line)["name"] for line in done.stdout.splitlines()], ["TRAIN_END"])

    def test_leaves_out_a_torn_last_line(self):
        self.write("a.log", DLLL + DLLL[:60])
        done = self.assay("log", "convert", "a.log", "--to", "dllogger")
        self.assertEqual(done.stdout, DLLL)
        self.assertIn("torn", done.stderr)


class Show(CliTest):
    def records(self, name, times, rank=0):
        with open(self.folder / name, "w", encoding="utf-8") as file:
            for at in times:
                file.write(json.dumps({"type": "metrics", "time_us": at, "rank": rank, "step": [1, at],
                                       "data": {"train.loss": at / 10}}, separators=(",", ":")) + "\n")

    def test_merges_ranks_by_time(self):
        self.records("rank0.jsonl", [1, 4, 5])
        self.records("rank1.jsonl", [2, 3, 6])  # names no rank of its own: the file does
        done = self.assay("log", "show", "rank0.jsonl", "rank1.jsonl", "--json")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(r["time_us"], r["rank"]) for r in rows], [(1, 0), (2, 1), (3, 1), (4, 0), (5, 0), (6, 1)])

    def test_prints_tables_and_metrics(self):
        self.records("a.jsonl", [1])
        (self.folder / "b.log").write_text(DLLL + "noise\n")
        done = self.assay("log", "show", "a.jsonl", "b.log")
        self.assertEqual(len(done.stdout.splitlines()), 4)
        self.assertIn("loss=0.1  speed=10", done.stdout)
        self.assertIn("noise", done.stdout)
        self.assertNotIn("\x1b", done.stdout)
        done = self.assay("log", "show", "a.jsonl", "b.log", "--metric", "speed")
        self.assertEqual(len(done.stdout.splitlines()), 2)
        self.assertNotIn("loss", done.stdout)
        done = self.assay("log", "show", "a.jsonl", "--metric", "train.los", expect=3)
        self.assertIn("did you mean 'train.loss'?", done.stderr)

    def test_follows_what_is_added(self):
        self.records("a.jsonl", [1])
        process = self.start("log", "show", "a.jsonl", "--follow", "--json")
        self.assertEqual(json.loads(process.stdout.readline())["time_us"], 1)
        with open(self.folder / "a.jsonl", "a", encoding="utf-8") as file:
            file.write('{"type":"message","time_us":9,')
            file.flush()
            time.sleep(0.5)
            file.write('"data":{}}\n')
        self.assertEqual(json.loads(process.stdout.readline())["time_us"], 9)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(10), 130)
        process.stdout.close()
        process.stderr.close()

    def test_shows_examples_in_help(self):
        for command in ("convert", "show"):
            self.assertIn("Examples:", self.assay("log", command, "--help").stdout)
        self.assay("log", expect=2)


if __name__ == "__main__":
    unittest.main()
