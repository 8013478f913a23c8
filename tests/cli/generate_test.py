"""assay generate: a model is trained on counting, and counts on."""
import json
import subprocess
import unittest

from support import ASSAY, CliTest

WORDS = "one two three four five six seven eight nine ten".split()
CASE = """
model: counter
framework: libtorch
task: counting
source: this test
licence: Apache-2.0
data: {{name: counting, layout: tokens, path: {data}}}
target: {{metric: perplexity, value: 1.5, goal: minimize}}
mutable: [Global.device]
config:
  Global: {{seed: 3, local_batch_size: 16}}
  Engine: {{run_mode: epoch, num_train_epochs: 30, eval_freq: 30}}
  Model: {{name: {model}, vocab_size: 300, hidden_size: 32, num_layers: 2, num_attention_heads: 2, max_position_embeddings: 32,
           hidden_dropout_prob: 0, attention_probs_dropout_prob: 0}}
  Data:
    Train: {{dataset: {{name: gpt, data_prefix: train, max_seq_len: 32}}, sampler: {{shuffle: true}}}}
    Eval: {{dataset: {{name: gpt, data_prefix: train, max_seq_len: 32}}, loader: {{batch_size: 16}}}}
    Test: {{dataset: {{name: gpt, data_prefix: train, max_seq_len: 32}}, loader: {{batch_size: 16}}}}
  Optimizer: {{name: AdamW, lr: {{name: constant, learning_rate: 0.003}}}}
"""


class Generate(CliTest):
    def train(self, model="gpt"):
        data = self.folder / "data"
        data.mkdir()
        documents = [" ".join(WORDS[(i + k) % 10] for k in range(200)) for i in range(20)]
        (data / "train.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
        self.assay("data", "tokenizer", "train", "--type", "bpe", "--vocab", 300, "-o", data / "tokenizer", data / "train.jsonl")
        self.assay("data", "encode", "--tokenizer", data / "tokenizer", "-o", data / "train", data / "train.jsonl")
        case = self.folder / "cases/counter"
        case.mkdir(parents=True)
        (case / "case.yaml").write_text(CASE.format(data=data, model=model))
        self.assay("train", "counter", "--home", self.folder)

    def generate(self, *arguments, **options):
        return self.assay("generate", "last", *arguments, **options)

    def test_continues_counting(self):
        self.train()
        greedy = ("--decode_strategy", "greedy_search", "--max_dec_len", 8)
        done = self.generate("three four", *greedy)
        self.assertTrue(done.stdout.startswith("three four five six seven"), done.stdout)
        self.assertRegex(done.stderr, r"\[generate\] 8 tokens, first after [0-9.]+ ms, then [0-9.]+ tokens/s")
        shown = json.loads(self.generate("three four", *greedy, "--json").stdout)
        self.assertEqual("three four" + shown["texts"][0]["text"] + "\n", done.stdout)
        self.assertEqual(len(shown["texts"][0]["tokens"]), 8)
        self.assertGreater(shown["texts"][0]["tokens_per_s"], 0)

        piped = subprocess.run([ASSAY, "generate", "last", *map(str, greedy)], cwd=self.folder, input="three four",
                               capture_output=True, text=True)
        self.assertEqual(piped.stdout, done.stdout)
        (self.folder / "prompt.txt").write_text("three four")
        self.assertEqual(self.generate("--prompt-file", "prompt.txt", *greedy).stdout, done.stdout)
        beams = self.generate("three four", "--decode_strategy", "beam_search", "--max_dec_len", 8)
        self.assertTrue(beams.stdout.startswith("three four five"), beams.stdout)

        sample = ("eight", "--temperature", 5, "--top_p", 1, "--top_k", 0, "--num_return_sequences", 2, "--json")
        texts = [[t["tokens"] for t in json.loads(self.generate(*sample, "--seed", seed).stdout)["texts"]] for seed in (1, 1, 2)]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])
        self.assertNotEqual(texts[0][0], texts[0][1])

        weights = next(self.folder.glob("runs/*/steps/1-train/output/model.safetensors"))
        by_file = self.assay("generate", "counter", "three four", *greedy, "--home", self.folder, "--weights", weights)
        self.assertEqual(by_file.stdout, done.stdout)
        self.refuses(weights)

    def refuses(self, weights):
        for arguments, message in [
                (("last", "one", "--top_p", 2), "top_p"),
                (("last", "one", "--decode_strategy", "best"), "decode_strategy"),
                (("last", "one", "--tokenizer", "nowhere"), "nowhere"),
                (("last", "one " * 100), "the prompt has"),
                (("last", "one", "--prompt-file", "prompt.txt"), "give one of them"),
                (("none", "one"), "none"),
                (("counter", "one", "--home", self.folder, "--weights", "nowhere"), "nowhere"),
                (("simplenet", "one", "--weights", weights), "tokenizer"),
        ]:
            done = self.assay("generate", *arguments, expect=None)
            self.assertIn(done.returncode, (2, 10), arguments)
            self.assertIn(message, done.stderr, arguments)
            self.assertEqual(done.stdout, "", arguments)

    def test_continues_counting_with_llama(self):
        self.train("llama")
        done = self.generate("three four", "--decode_strategy", "greedy_search", "--max_dec_len", 8)
        self.assertTrue(done.stdout.startswith("three four five six"), done.stdout)


if __name__ == "__main__":
    unittest.main()
