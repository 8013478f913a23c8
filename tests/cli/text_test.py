"""assay data tokenizer train and assay data encode: texts to tokens, whole or not at all."""
import json
import os
import pathlib
import pty
import signal
import subprocess
import time
import unittest

import numpy

from support import ASSAY, DEADLINE_S, SOURCE, CliTest

SENTENCES = ["The cat sat on the mat.", "They sing, and we're singing along.", "Naïve 你好 😀", "It wasn't the same dog?"]


class TextTest(CliTest):
    def write(self, name, documents):
        path = self.folder / name
        path.write_text("".join(json.dumps(d) + "\n" for d in documents), encoding="utf-8")
        return path

    def documents(self, count=200):
        return [{"text": " ".join(SENTENCES[(i + k) % 4] for k in range(1 + i % 7)), "label": i % 2} for i in range(count)]

    def train(self, kind="bpe", vocabulary=400):
        self.write("train.jsonl", self.documents())
        return self.assay("data", "tokenizer", "train", "--type", kind, "--vocab", vocabulary, "-o", kind, "train.jsonl")

    def test_encodes_texts_to_tokens(self):
        for kind in "bpe", "wordpiece", "sentencepiece":
            with self.subTest(kind):
                self.assertEqual(self.train(kind).stdout, f"{kind}\n")
                done = self.assay("data", "encode", "--tokenizer", kind, "-o", f"{kind}/data/train", "train.jsonl", "--json")
                result = json.loads(done.stdout)
                ids = numpy.load(self.folder / f"{kind}/data/train_ids.npy", mmap_mode="r")
                index = numpy.load(self.folder / f"{kind}/data/train_idx.npz")
                self.assertEqual(ids.dtype, numpy.uint16)
                self.assertEqual(len(ids), result["num_tokens"])
                self.assertEqual(index["lens"].sum(), len(ids))
                self.assertEqual(index["lens"].shape, (200,))
                self.assertEqual(index["docs"].tolist(), list(range(201)))
                self.assertEqual(index["bytes"].tolist(), [len(d["text"].encode()) for d in self.documents()])
                last = numpy.cumsum(index["lens"]) - 1
                self.assertEqual(len(set(ids[last].tolist())), 1, "every document ends with the end token")

    def test_follows_gpt2s_rules_in_the_files_written(self):
        """The plain Python tokenizer reads the files and finds the same tokens."""
        self.train()
        texts = [d["text"] for d in self.documents(20)]
        self.write("some.jsonl", [{"text": t} for t in texts])
        self.assay("data", "encode", "--tokenizer", "bpe", "-o", "x", "--no-end", "some.jsonl")
        (self.folder / "texts.json").write_text(json.dumps(texts))
        peer = subprocess.run(["/usr/bin/python3", SOURCE / "tests/peers/tokenizers.py", "gpt2", "bpe", "texts.json"],
                              cwd=self.folder, capture_output=True, text=True, check=True)
        expected = [i for line in peer.stdout.splitlines() for i in json.loads(line)]
        self.assertEqual(numpy.load(self.folder / "x_ids.npy").tolist(), expected)

    def test_reads_a_plain_text_file_as_one_document(self):
        self.train()
        (self.folder / "a.txt").write_bytes(b"one\ntwo\xff")
        (self.folder / "b.txt").write_text("three")
        (self.folder / "empty.txt").write_text("")
        done = self.assay("data", "encode", "--tokenizer", "bpe", "-o", "x", "a.txt", "empty.txt", "b.txt", "--json")
        self.assertEqual(json.loads(done.stdout)["num_documents"], 2)

    def test_names_the_place_of_a_fault_and_leaves_nothing(self):
        self.train()
        (self.folder / "bad.jsonl").write_text('{"text": "fine"}\n{"tekst": 1}\n')
        before = sorted(os.listdir(self.folder))
        for arguments, message in [
                (["--tokenizer", "bpe", "-o", "x", "bad.jsonl"], "bad.jsonl:2: no text"),
                (["--tokenizer", "bpe", "-o", "x", "train.jsonl", "none.jsonl"], "none.jsonl: cannot read"),
                (["--tokenizer", "nowhere", "-o", "x", "train.jsonl"], "nowhere: no such folder"),
                (["--tokenizer", ".", "-o", "x", "train.jsonl"], "no tokenizer in it"),
        ]:
            done = self.assay("data", "encode", *arguments, expect=2)
            self.assertIn(message, done.stderr)
            self.assertEqual(sorted(os.listdir(self.folder)), before, message)
        done = self.assay("data", "tokenizer", "train", "--type", "bep", "-o", "y", "train.jsonl", expect=2)
        self.assertIn("did you mean 'bpe'", done.stderr)
        self.assay("data", "tokenizer", "train", "--vocab", 100, "-o", "y", "train.jsonl", expect=2)
        self.assay("data", "tokenizer", "train", "--type", "sentencepiece", "--vocab", 50, "-o", "y", "train.jsonl", expect=2)
        (self.folder / "bpe/merges.txt").write_text("#version: 0.2\nnonsense\n")
        done = self.assay("data", "encode", "--tokenizer", "bpe", "-o", "x", "train.jsonl", expect=2)
        self.assertIn("merges.txt:2:", done.stderr)
        (self.folder / "nothing.jsonl").write_text("")
        self.assay("data", "tokenizer", "train", "-o", "y", "nothing.jsonl", expect=3)
        self.assertFalse((self.folder / "y").exists())

    def test_keeps_the_old_files_when_interrupted(self):
        self.train()
        self.assay("data", "encode", "--tokenizer", "bpe", "-o", "x", "train.jsonl")
        old = (self.folder / "x_ids.npy").read_bytes(), (self.folder / "x_idx.npz").read_bytes()
        line = json.dumps(self.documents(1)[0] | {"text": " ".join(SENTENCES) * 200}) + "\n"
        (self.folder / "big.jsonl").write_text(line * 4000)
        process = self.start("data", "encode", "--tokenizer", "bpe", "-o", "x", "big.jsonl")
        deadline = time.monotonic() + DEADLINE_S
        while not list(self.folder.glob("x_ids.npy.*.tmp")) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(list(self.folder.glob("*.tmp")), [])
        self.assertEqual(((self.folder / "x_ids.npy").read_bytes(), (self.folder / "x_idx.npz").read_bytes()), old)

    def test_shows_a_progress_bar_on_a_terminal(self):
        self.train()
        line = json.dumps({"text": " ".join(SENTENCES) * 200}) + "\n"
        (self.folder / "big.jsonl").write_text(line * 1000)
        ours, theirs = pty.openpty()
        done = subprocess.run([ASSAY, "data", "encode", "--tokenizer", "bpe", "-o", "x", "big.jsonl"], cwd=self.folder,
                              env=self.environment(TERM="xterm"), stderr=theirs, stdout=subprocess.PIPE, timeout=DEADLINE_S)
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 1 << 16):  # a terminal hands out its lines in pieces
                shown += part
        except OSError:
            pass  # the end, as terminals say it
        shown = shown.decode()
        os.close(ours)
        self.assertEqual(done.returncode, 0)
        self.assertIn("encode [", shown)
        self.assertIn("MB/s", shown)
        self.assertTrue(pathlib.Path(self.folder / "x_idx.npz").exists())


if __name__ == "__main__":
    unittest.main()
