"""Small data sets in the layouts of the cases, for tests that train the same model in many ways."""
import json
import random

from worker_support import write_idx

WORDS = "the of and to in a is that for it as was with be by on not he his but at are this have an had they from or one".split()
VOCABULARY = 300
USERS, FILMS = 30, 40


def write_documents(path, count, seed):
    choose = random.Random(seed)
    with open(path, "w") as file:
        for i in range(count):
            words = [choose.choice(WORDS) for _ in range(30 + choose.randrange(60))]
            if i % 2:
                words[::5] = ["winner"] * len(words[::5])
            file.write(json.dumps({"text": " ".join(words) + ".", "label": i % 2}) + "\n")


def make_tokens(assay, folder):
    """For gpt, llama and glm; `assay` runs assay."""
    for part, seed in ("train", 1), ("test", 2):
        write_documents(folder / f"{part}.jsonl", 60, seed)
    assay("data", "tokenizer", "train", "--type", "bpe", "--vocab", VOCABULARY, "-o", folder / "tokenizer", folder / "train.jsonl")
    for part in "train", "test":
        assay("data", "encode", "--tokenizer", folder / "tokenizer", "-o", folder / part, folder / f"{part}.jsonl")


def make_texts(assay, folder):
    """For bert."""
    for part, seed in ("train", 1), ("test", 2):
        write_documents(folder / f"{part}.jsonl", 60, seed)
    assay("data", "tokenizer", "train", "--type", "wordpiece", "--vocab", VOCABULARY, "-o", folder / "tokenizer",
          folder / "train.jsonl")


def make_images(_, folder):
    """For resnet: every class is a grey of its own, with noise."""
    choose = random.Random(3)
    for part, count in ("train", 64), ("t10k", 32):
        labels = bytes(choose.randrange(10) for _ in range(count))
        pixels = b"".join(bytes(min(255, 20 * label + choose.randrange(60)) for _ in range(28 * 28)) for label in labels)
        write_idx(folder / f"{part}-images-idx3-ubyte.gz", (count, 28, 28), pixels)
        write_idx(folder / f"{part}-labels-idx1-ubyte.gz", (count,), labels)


def write_ratings(path, count, seed, noise=0):
    """Users like films of their own parity; this share of the ratings is the opposite."""
    choose = random.Random(seed)
    with open(path, "w") as file:
        file.write("user,item,rating\n")
        for _ in range(count):
            user, item = choose.randrange(USERS), choose.randrange(FILMS)
            liked = (user + item) % 2 == 0
            if noise and choose.random() < noise:
                liked = not liked
            file.write(f"{user},{item},{4.5 if liked else 2.0}\n")


def make_ratings(_, folder):
    """For deepfm."""
    for part, seed in ("train", 1), ("test", 2):
        write_ratings(folder / f"{part}.csv", 400, seed)


# Case -> how its data are made, and what the model has to be told of them.
CASES = {
    "gpt": (make_tokens, [f"Model.vocab_size={VOCABULARY}"]),
    "llama": (make_tokens, [f"Model.vocab_size={VOCABULARY}"]),
    "glm": (make_tokens, [f"Model.vocab_size={VOCABULARY + 3}"]),
    "bert": (make_texts, [f"Model.vocab_size={VOCABULARY}"]),
    "resnet": (make_images, []),
    "deepfm": (make_ratings, [f"Model.fields=[{USERS}, {FILMS}]"]),
}


def settings(case, folder):
    """Makes the data of a case in a new folder with run(), and returns the --set arguments for it."""
    sets = [f"data.path={folder}", *CASES[case][1]]
    return [word for setting in sets for word in ("--set", setting)]


def prepare(case, assay, folder):
    folder.mkdir(parents=True)
    CASES[case][0](assay, folder)
    return settings(case, folder)
