"""Tokenizers in plain Python, for comparison. Each reads a JSON file, a list of texts, and prints a list for each.

  gpt2 FOLDER TEXTS   byte-level BPE by GPT-2's published rules, from vocab.json and merges.txt
  bert FOLDER TEXTS   basic tokens and WordPiece by BERT's published rules, from vocab.txt, lower case
  unicode             class and folding of every character
"""
import json
import sys
import unicodedata


def byte_letters():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}


class Gpt2:
    def __init__(self, folder):
        import regex
        self.numbers = json.load(open(f"{folder}/vocab.json", encoding="utf-8"))
        lines = open(f"{folder}/merges.txt", encoding="utf-8").read().split("\n")[1:-1]
        self.ranks = {tuple(line.split()): i for i, line in enumerate(lines)}
        self.letters = byte_letters()
        self.pattern = regex.compile(
            r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")

    def merged(self, symbols):
        while len(symbols) > 1:
            pairs = [(self.ranks.get(pair, 1 << 60), pair) for pair in zip(symbols, symbols[1:])]
            rank, best = min(pairs)
            if rank == 1 << 60:
                break
            out, i = [], 0
            while i < len(symbols):
                if tuple(symbols[i:i + 2]) == best:
                    out.append("".join(best))
                    i += 2
                else:
                    out.append(symbols[i])
                    i += 1
            symbols = out
        return symbols

    def encode(self, text):
        ids = []
        for piece in self.pattern.findall(text):
            symbols = [self.letters[b] for b in piece.encode("utf-8")]
            ids += [self.numbers[s] for s in self.merged(symbols)]
        return ids


def is_punctuation(char):
    code = ord(char)
    ascii_symbol = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return ascii_symbol or unicodedata.category(char).startswith("P")


def is_ideograph(char):
    code = ord(char)
    ranges = [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
              (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)]
    return any(low <= code <= high for low, high in ranges)


def folded(text):
    lower = "".join(c.lower() for c in text)  # character by character: no rule for a final sigma
    return "".join(c for c in unicodedata.normalize("NFD", lower) if unicodedata.category(c) != "Mn")


def basic_tokens(text):
    clean = ""
    for char in text:
        if char in "\0\ufffd":
            continue
        if char in " \t\n\r" or unicodedata.category(char) == "Zs":
            clean += " "
        elif unicodedata.category(char) in ("Cc", "Cf"):
            continue
        else:
            clean += f" {char} " if is_ideograph(char) else char
    tokens = []
    for word in clean.split():
        spaced = "".join(f" {c} " if is_punctuation(c) else c for c in folded(word))
        tokens += spaced.split()
    return tokens


class Bert:
    def __init__(self, folder):
        tokens = open(f"{folder}/vocab.txt", encoding="utf-8", newline="\n").read().split("\n")[:-1]
        self.numbers = {token: i for i, token in enumerate(tokens)}

    def pieces(self, word):
        if len(word) > 100:
            return ["[UNK]"]
        found, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in self.numbers:
                    break
            else:
                return ["[UNK]"]
            found.append(piece)
            start = end
        return found

    def encode(self, text):
        return [self.numbers[p] for word in basic_tokens(text) for p in self.pieces(word)]


def unicode_table():
    names = {"L": "L", "N": "N", "P": "P"}
    exact = {"Mn": "M", "Zs": "S", "Cc": "C", "Cf": "C"}
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        category = unicodedata.category(chr(code))
        print(exact.get(category) or names.get(category[0], "-"), folded(chr(code)).encode("utf-8").hex(), sep="")


def main():
    if sys.argv[1] == "unicode":
        return unicode_table()
    peer = {"gpt2": Gpt2, "bert": Bert}[sys.argv[1]](sys.argv[2])
    for text in json.load(open(sys.argv[3], encoding="utf-8")):
        print(json.dumps(peer.encode(text), separators=(",", ":")))


if __name__ == "__main__":
    main()
