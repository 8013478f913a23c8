"""The same corpus through Python: SentencePiece's own module, and GPT-2's and BERT's tokenizers as plain Python with a cache of
words, which is what their published code is. Prints one JSON line."""
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/peers"))
import tokenizers  # noqa: E402


def megabytes_per_second(texts, encode):
    total = sum(len(t.encode()) for t in texts)
    start = time.perf_counter()
    num_tokens = sum(len(encode(t)) for t in texts)
    return total / 1e6 / (time.perf_counter() - start), num_tokens


class CachedGpt2(tokenizers.Gpt2):
    def __init__(self, folder):
        super().__init__(folder)
        self.cache = {}

    def encode(self, text):
        ids = []
        for piece in self.pattern.findall(text):
            if piece not in self.cache:
                symbols = [self.letters[b] for b in piece.encode("utf-8")]
                self.cache[piece] = [self.numbers[s] for s in self.merged(symbols)]
            ids += self.cache[piece]
        return ids


def main():
    corpus, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    texts = [json.loads(line)["text"] for line in open(corpus, encoding="utf-8")]
    import sentencepiece
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece-8192/tokenizer.model"))
    found = {
        "bpe": megabytes_per_second(texts, CachedGpt2(folder / "bpe-8192").encode),
        "wordpiece": megabytes_per_second(texts[:len(texts) // 10 + 1], tokenizers.Bert(folder / "wordpiece-8192").encode),
        "sentencepiece": megabytes_per_second(texts, model.encode),
    }
    print(json.dumps({name: {"encode_mb_per_s": rate, "num_tokens": count} for name, (rate, count) in found.items()}))


if __name__ == "__main__":
    main()
