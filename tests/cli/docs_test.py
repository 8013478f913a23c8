"""The documents are true where a program can tell: links and anchors lead somewhere, paths exist, commands and options
are those of the programs, lines are short, and the two READMEs show the same commands. Nothing is trained here."""
import functools
import itertools
import pathlib
import re
import subprocess
import unittest

from support import ASSAY, BIN, SOURCE

LONGEST_LINE = 130
TREES = ["docs", "cases", "vendors", "bench", "src", "tests", "script"]
PATH = re.compile(r"(?:src|tests|script|cases|docs|vendors|apps|bench|cmake|\.ci)/[\w./{},*<>-]*")
PAGE = re.compile(r"docs/[\w/-]+\.md")


def pages():
    found = sorted(SOURCE.glob("*.md"))
    for tree in TREES:
        found += sorted((SOURCE / tree).rglob("*.md"))
    return found


def name_of(page):
    return str(page.relative_to(SOURCE))


def lines_of(page):
    """Number and text of each line, and whether it is inside a code block; the fences themselves are left out."""
    inside = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
        else:
            yield number, line, inside


def prose_of(page):
    return [(number, line) for number, line, inside in lines_of(page) if not inside]


def without_code(line):
    return re.sub(r"`[^`]*`", "", line)


@functools.lru_cache(maxsize=None)
def anchors_of(page):
    """The anchors that GitHub gives the headings of a page."""
    seen = {}
    anchors = set()
    for _, line in prose_of(page):
        heading = re.match(r"#+ (.*)", line)
        if not heading:
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        anchors.add(slug if count == 0 else f"{slug}-{count}")
    return anchors


def alternatives(path):
    """a/{b,c}.h is a/b.h and a/c.h."""
    parts = re.split(r"\{([^}]*)\}", path)
    choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
    return ["".join(choice) for choice in itertools.product(*choices)]


def exists(path):
    path = path.rstrip("/")
    return any(SOURCE.glob(path)) if "*" in path else (SOURCE / path).exists()


def first_missing(path):
    """The first part of a path that does not exist, without its ending."""
    folder = SOURCE
    for part in pathlib.PurePath(path).parts:
        folder = folder / part
        if not folder.exists():
            return part.split(".")[0]
    return None


def example_names(page):
    """A page of docs/extend shows how to write new files. Their names are those of its numbered headings."""
    if "docs/extend/" not in name_of(page):
        return set()
    headings = re.findall(r"^## \d+\..*$", page.read_text(), flags=re.M)
    paths = [path for heading in headings for path in re.findall(r"`([^`]+)`", heading)]
    return {first_missing(path) for path in paths} - {None}


@functools.lru_cache(maxsize=None)
def help_of(program, *words):
    """The help of a subcommand, or None when there is no such subcommand."""
    done = subprocess.run([program, *words, "--help"], capture_output=True, text=True, timeout=120)
    usage = " ".join([pathlib.Path(program).name, *words])
    known = done.returncode == 0 and re.search(rf"^Usage: {re.escape(usage)}( |$)", done.stdout, flags=re.M)
    return done.stdout if known else None


def commands_of(page):
    """Line number and words of every command of ours that a page shows, in code blocks and between backticks."""
    for number, line, inside in lines_of(page):
        texts = [line.split("  #")[0].split(" # ")[0]] if inside else re.findall(r"`([^`]+)`", line)
        for text in texts:
            for part in re.split(r"&&|\|(?!\w)|;", text):
                words = part.split()
                if words and words[0] in ("assay", "assay-worker") and len(words) > 1:
                    yield number, words


def subcommand_of(words):
    """The words of a command that are subcommands, and its options."""
    names = []
    rest = words[1:]
    while rest and rest[0] in ("--home", "--runs"):
        rest = rest[2:]
    while rest and rest[0] in ("-q", "-v", "--json"):
        rest = rest[1:]
    while rest and re.fullmatch(r"[a-z][a-z-]*", rest[0]) and len(names) < 3:
        names.append(rest[0])
        rest = rest[1:]
    options = [re.match(r"--?[\w-]+", word).group() for word in rest if re.match(r"--?[A-Za-z]", word)]
    return names, options


class DocsTest(unittest.TestCase):
    def no_faults(self, faults):
        self.assertEqual(faults, [], "\n" + "\n".join(faults))

    def test_reads_every_page(self):
        self.assertGreater(len(pages()), 30)

    def test_resolves_links_and_anchors(self):
        faults = []
        for page in pages():
            for number, line in prose_of(page):
                for target in re.findall(r"\]\(([^)\s]+)\)", without_code(line)):
                    if re.match(r"[a-z]+:", target):
                        continue
                    path, _, anchor = target.partition("#")
                    file = (page.parent / path) if path else page
                    if not file.exists():
                        faults.append(f"{name_of(page)}:{number}: no file {target}")
                    elif anchor and anchor not in anchors_of(file.resolve()):
                        faults.append(f"{name_of(page)}:{number}: no heading {target}")
        self.no_faults(faults)

    def test_names_paths_that_exist(self):
        faults = []
        for page in pages():
            examples = example_names(page)
            for number, line in prose_of(page):
                for code in re.findall(r"`([^`]+)`", line):
                    if not PATH.fullmatch(code) or "<" in code:
                        continue
                    for path in alternatives(code):
                        if not exists(path) and first_missing(path) not in examples:
                            faults.append(f"{name_of(page)}:{number}: no {path}")
        self.no_faults(faults)

    def test_names_pages_that_exist_in_sources(self):
        faults = []
        for tree in ["apps", "src", "tests", "bench", "cmake", "script", "cases", "vendors"]:
            for file in sorted((SOURCE / tree).rglob("*")):
                if not file.is_file() or file.suffix in (".png", ".npy", ".safetensors", ".gz"):
                    continue
                for path in PAGE.findall(file.read_text(errors="replace")):
                    if not (SOURCE / path).exists():
                        faults.append(f"{name_of(file)}: no {path}")
        self.no_faults(faults)

    def test_names_tests_that_exist(self):
        files = {file.name: file for file in (SOURCE / "tests").rglob("*_test.*")}
        text = "\n".join(file.read_text() for file in files.values())
        faults = []
        for page in pages():
            for number, line in prose_of(page):
                for code in re.findall(r"`([^`]+)`", line):
                    name = code.rsplit("/", 1)[-1]
                    if re.fullmatch(r"\w+_test\.(py|cpp)", name) and name not in files:
                        faults.append(f"{name_of(page)}:{number}: no test {code}")
                    if re.fullmatch(r"test_\w+", code) and f"def {code}(" not in text:
                        faults.append(f"{name_of(page)}:{number}: no test {code}")
        self.no_faults(faults)

    def test_names_commands_and_options_that_exist(self):
        worker = str(BIN / "assay-worker")
        everywhere = help_of(ASSAY)
        faults = []
        num_commands = 0
        for page in pages():
            for number, words in commands_of(page):
                program = ASSAY if words[0] == "assay" else worker
                if not pathlib.Path(program).exists():
                    continue  # a build without the data plane
                num_commands += 1
                names, options = subcommand_of(words)
                while len(names) > 1 and help_of(program, *names) is None:
                    names.pop()
                text = help_of(program, *names)
                if text is None:
                    faults.append(f"{name_of(page)}:{number}: no command {' '.join(words)}")
                    continue
                for option in options:
                    if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text + everywhere):
                        faults.append(f"{name_of(page)}:{number}: {' '.join(words[:3])} has no option {option}")
        self.assertGreater(num_commands, 100)
        self.no_faults(faults)

    def test_names_options_of_scripts_that_exist(self):
        faults = []
        for page in pages():
            for number, line, inside in lines_of(page):
                for code in [line.split("#")[0]] if inside else re.findall(r"`([^`]+)`", line):
                    words = code.split("|")[0].split()
                    if not words or not re.fullmatch(r"(script|bench)/\w+", words[0]) or not exists(words[0]):
                        continue
                    text = (SOURCE / words[0]).read_text()
                    faults += [f"{name_of(page)}:{number}: {words[0]} has no option {word}"
                               for word in words[1:] if word.startswith("--") and word not in text]
        self.no_faults(faults)

    def test_keeps_lines_short(self):
        faults = []
        for page in pages():
            for number, line in prose_of(page):
                if len(line) > LONGEST_LINE and not line.startswith("|"):
                    faults.append(f"{name_of(page)}:{number}: {len(line)} characters")
        self.no_faults(faults)

    def test_keeps_the_two_readmes_in_step(self):
        def commands(name):
            page = SOURCE / name
            return [line.split("#")[0].strip() for _, line, inside in lines_of(page) if inside and line.strip()]

        def targets(name):
            found = re.findall(r"\]\(([^)\s]+)\)", (SOURCE / name).read_text())
            return {target for target in found if not target.startswith("README")}

        self.assertEqual(commands("README.md"), commands("README.zh-CN.md"))
        self.assertEqual(targets("README.md"), targets("README.zh-CN.md"))

    def test_explains_each_term_in_both_languages(self):
        rows = [line.strip("|").split("|") for _, line in prose_of(SOURCE / "docs/glossary.md") if line.startswith("| ")]
        terms = [row for row in rows if row[0].strip() not in ("term", "")]
        self.assertGreater(len(terms), 30)
        names = [row[0].strip() for row in terms]
        self.assertEqual(len(names), len(set(names)), "a term stands twice")
        for row in terms:
            self.assertEqual(len(row), 4, row)
            self.assertTrue(all(cell.strip() for cell in row), row)
            self.assertRegex(row[1] + row[3], r"[\u4e00-\u9fff]", "no Chinese")

    def test_lists_every_page_in_the_index(self):
        index = SOURCE / "docs/README.md"
        listed = {(index.parent / target.split("#")[0]).resolve()
                  for target in re.findall(r"\]\(([^)\s]+)\)", index.read_text())}
        missing = [name_of(page) for page in pages()
                   if "docs/" in name_of(page) and page != index and page.resolve() not in listed]
        self.no_faults(missing)


if __name__ == "__main__":
    unittest.main()
