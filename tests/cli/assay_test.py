"""The program people meet: help, mistakes, start-up, completion."""
import json
import os
import pathlib
import re
import subprocess
import time
import unittest

from support import ASSAY, BIN, SLOWER, SOURCE, CliTest

COMMANDS = ["demo", "train", "resume", "report", "cases", "config", "log", "data", "doctor", "completion"]


class Help(CliTest):
    def test_shows_every_command_and_examples_in_help(self):
        text = self.assay("--help").stdout
        for command in COMMANDS:
            self.assertIn(f"\n  {command} ", text)
        self.assertIn("Examples:", text)
        self.assertIn("Exit codes:", text)

    def test_has_help_for_every_command(self):
        for command in COMMANDS:
            text = self.assay(command, "--help").stdout
            self.assertIn("Usage: assay " + command, text)

    def commands_below(self, *words):
        """Every command that people see, with those below it: ("data", "prepare"), ..."""
        text = self.assay(*words, "--help").stdout
        listed = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, flags=re.M)
        for name in re.findall(r"^  (\w+)", listed.group(1), flags=re.M) if listed else []:
            yield (*words, name)
            yield from self.commands_below(*words, name)

    def test_shows_own_examples_and_common_options_in_every_help(self):
        commands = list(self.commands_below())
        self.assertGreater(len(commands), 25, commands)
        for words in commands:
            text = self.assay(*words, "--help").stdout
            examples = text[text.index("\nExamples:\n") + 11:].split("\n\n")[0].splitlines()
            self.assertTrue(examples, words)
            for line in examples:
                self.assertIn("assay", line)
                self.assertIn(words[0], line, f"an example of another command in the help of {words}")
            for option in ("--json", "--runs", "--home", "-q,--quiet", "-v,--verbose"):
                self.assertEqual(text.count(f"\n  {option} "), 1, (words, option))

    def test_prints_the_version(self):
        self.assertRegex(self.assay("--version").stdout, r"^assay \d+\.\d+\.\d+ \(")

    def test_shows_help_without_arguments(self):
        self.assertIn("Usage: assay", self.assay(expect=2).stderr)


class Mistakes(CliTest):
    def check(self, *arguments, says, expect=2):
        done = self.assay(*arguments, expect=expect)
        for part in [says] if isinstance(says, str) else says:
            self.assertIn(part, done.stderr)
        self.assertEqual(done.stderr.count("error:"), 1, "one clear message")
        self.assertEqual(self.runs(), [], "nothing half written")

    def test_explains_wrong_commands_and_options(self):
        self.check("dmeo", says="no command 'dmeo' (did you mean 'demo'?)")
        self.check("demo", "--dry-rnu", says="did you mean '--dry-run'?")
        self.check("train", "resnet", "--batch-sise", "3", says="did you mean '--batch_size'?")
        self.check("train", says="case is required")
        self.check("resume", "nothing", says="no run 'nothing'")
        self.check("completion", "tcsh", says="tcsh")

    def test_explains_wrong_configurations(self):
        self.check("train", "resnte", says="did you mean 'resnet'?")
        self.check("train", "resnet", "--set", "Engine.max_step=3", says="did you mean 'Engine.max_steps'?")
        self.check("train", "resnet", "--set", "Engine.max_steps=ten", says=["Engine.max_steps", "ten"])
        self.check("train", "resnet", "--set", "nonsense", says="nonsense")
        self.check("train", "resnet", "--autocast", "maybe", says="--autocast must be")
        self.check("train", "resnet", "--batch_size", "many", says="--batch_size must be an integer")
        self.check("train", "resnet:libtorch", says="model:framework:hardware:nnodes:nproc:repeat")
        self.check("train", "resnet", "--nnode", "2", "--nproc_per_node", "1", says="--master_addr")
        self.check("train", "resnet", "--nnode", "2", "--node_rank", "2", "--master_addr", "::1", says="--node_rank")
        self.check("train", "resnet", "--precision_align", "yes", says="--precision_align")

    def test_keeps_the_target_from_vendors_in_the_closed_division(self):
        home = self.folder / "home"
        (home / "vendors/acme/resnet").mkdir(parents=True)
        (home / "cases").symlink_to(SOURCE / "cases")
        file = home / "vendors/acme/resnet/config_X1x1x1.yaml"
        file.write_text("config:\n  Global:\n    seed: 7\ntarget:\n  value: 0.1\n")
        done = self.assay("--home", home, "train", "resnet:libtorch:X1:1:1:1", "--vendor", "acme", expect=2)
        self.assertIn("config_X1x1x1.yaml:5", done.stderr)
        self.assertIn("target.value", done.stderr)
        self.assertEqual(self.runs(), [])

    def test_explains_a_missing_data_set(self):
        self.check("train", "resnet", "--dataset_path", "/no/such/folder", says=["/no/such/folder", "dataset-fashion-mnist"])
        self.check("demo", "--set", "data.path=/no/such/folder", says="/no/such/folder")

    def test_explains_a_missing_home(self):
        self.check("--home", "/tmp/no-such-home", "cases", says="no folder cases/")

    def test_explains_unwritable_runs(self):
        (self.folder / "file").write_text("x")
        done = self.assay("--runs", "file/below", "demo", expect=4)
        self.assertIn("file/below", done.stderr)

    def test_explains_damaged_run_folders(self):
        run = self.folder / "runs" / "r"
        run.mkdir(parents=True)
        (run / "plan.json").write_text("{ not json")
        (run / "journal.jsonl").write_text("")
        done = self.assay("report", "r", expect=2)
        self.assertIn("plan.json", done.stderr)
        done = self.assay("resume", "r", expect=2)
        self.assertEqual((run / "plan.json").read_text(), "{ not json")
        self.assay("report", "/tmp", expect=2)


class RunAFile(CliTest):
    def test_plans_a_case_as_train_does(self):
        case = SOURCE / "cases/simplenet"
        trained = json.loads(self.assay("train", "simplenet", "--dry-run", "--json").stdout)
        for path in (case, case / "case.yaml"):
            self.assertEqual(json.loads(self.assay("run", path, "--dry-run", "--json").stdout), trained)
        full = json.loads(self.assay("run", case / "full.yaml", "--dry-run", "--json").stdout)
        self.assertEqual(full["case"], json.loads(self.assay("train", "simplenet-full", "--dry-run", "--json").stdout)["case"])

    def test_trains_a_case(self):
        home = self.folder / "home"
        (home / "cases/small").mkdir(parents=True)
        text = (SOURCE / "cases/simplenet/case.yaml").read_text().replace("model: simplenet", "model: small")
        text = text.replace("run_mode: epoch", "run_mode: step\n    max_steps: 3")
        (home / "cases/small/case.yaml").write_text(text)
        self.assertIn("preflight passed", self.assay("run", home / "cases/small", "--check").stderr)
        self.assertEqual(self.runs(), [])
        self.assay("run", home / "cases/small/case.yaml")
        run, = self.runs()
        self.assertTrue((run / "steps/1-train/output/model.safetensors").exists())

    def test_rejects_a_file_that_nobody_recognises(self):
        (self.folder / "notes.txt").write_text("cases: none")
        done = self.assay("run", "notes.txt", expect=2)
        for part in ("notes.txt: not a file that assay can run", "campaign.yaml", "case.yaml"):
            self.assertIn(part, done.stderr)
        self.assertIn("missing.yaml: there is no such file", self.assay("run", "missing.yaml", expect=2).stderr)
        self.assertEqual(self.runs(), [])


class Everyday(CliTest):
    def test_starts_fast(self):
        best = min(self.time_of([ASSAY, "cases"]) for _ in range(10))
        # 20 ms is the promise; a loaded machine gets some room here, bench/startup has the figure.
        self.assertLess(best, 0.06 * SLOWER)

    def time_of(self, argv):
        start = time.perf_counter()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, env=self.environment())
        return time.perf_counter() - start

    def test_lists_cases(self):
        self.assertIn("resnet", self.assay("cases").stdout)
        cases = json.loads(self.assay("cases", "--json").stdout)
        files = sorted((SOURCE / "cases").glob("*/*.yaml"), key=lambda p: (p.parent.name, p.stem != "case", p.stem))
        names = [p.parent.name if p.stem == "case" else f"{p.parent.name}-{p.stem}" for p in files]
        self.assertEqual([c["case"] for c in cases], names)
        self.assertTrue({"gpt", "gpt-full", "gpt-175b", "bert-full", "resnet-50", "deepfm"} <= set(names))
        parameters = {c["case"]: c["parameters"] for c in cases}
        self.assertEqual(parameters["resnet-50"], 25557032)
        self.assertTrue(all(parameters.values()), parameters)
        by_name = {c["case"]: c for c in cases}
        self.assertEqual([(by_name[n]["model"], by_name[n]["size"]) for n in ("gpt", "gpt-1.3b", "ocr_det-full")],
                         [("gpt", None), ("gpt", "1.3b"), ("ocr_det", "full")])
        # Nothing ran here: what is stored with the cases, and whether it is of the case as it is now.
        stored = {r["case"]: r for p in (SOURCE / "cases").glob("*/results.json") for r in json.loads(p.read_text())["results"]}
        self.assertTrue({"gpt", "resnet", "bert"} <= set(stored))
        for name, one in by_name.items():
            expected = None
            if name in stored:
                expected = {**stored[name], "stored": True, "current": stored[name]["hash"] == one["hash"]}
            self.assertEqual(one["last_result"], expected)
        lines = self.assay("cases").stdout.splitlines()
        self.assertTrue(all(len(line) <= 100 for line in lines), max(lines, key=len))
        word = "stored" if by_name["gpt"]["last_result"]["current"] else "outdated"
        value = re.escape(f"{stored['gpt']['value']:.3f}")
        self.assertRegex("\n".join(lines), rf"gpt +3\.4M +sotu-bpe +bits_per_byte <= 1\.95 +{value} {word}\n")
        self.assertRegex("\n".join(lines), r"resnet-50 +25\.6M +fashion-images +accuracy >= 0\.759 +-\n")

    def test_checks_the_machine(self):
        done = self.assay("doctor", expect=None)
        self.assertIn(done.returncode, (0, 4))
        for word in ["libtorch", "BLAS", "GFLOPS", "threads", "memory", "oneDNN", "gloo", "compiler"]:
            self.assertIn(word, done.stdout)
        findings = json.loads(self.assay("doctor", "--json", expect=None).stdout)["findings"]
        for finding in findings:
            self.assertEqual(finding["state"] == "problem", finding["fix"] is not None, finding)

    def test_names_a_missing_worker(self):
        alone = self.folder / "alone"
        alone.mkdir()
        (alone / "assay").write_bytes(pathlib.Path(ASSAY).read_bytes())
        (alone / "assay").chmod(0o755)
        done = subprocess.run([str(alone / "assay"), "doctor"], env=self.environment(), capture_output=True, text=True)
        self.assertEqual(done.returncode, 4, done.stdout)
        self.assertIn("assay-worker", done.stdout)
        self.assertIn("fix: ", done.stdout)

    def test_completes_in_a_real_bash(self):
        script = ("source <(assay completion bash); "
                  "COMP_WORDS=(assay train res); COMP_CWORD=2; _assay; echo \"${COMPREPLY[@]}\"; "
                  "COMP_WORDS=(assay train --batch); COMP_CWORD=2; _assay; echo \"${COMPREPLY[@]}\"; "
                  "COMP_WORDS=(assay do); COMP_CWORD=1; _assay; echo \"${COMPREPLY[@]}\"")
        env = self.environment(PATH=f"{BIN}:{os.environ['PATH']}")
        done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.split("\n")[:3], ["resnet resnet-18 resnet-50 resnet-demo resnet-full", "--batch_size", "doctor"], done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
