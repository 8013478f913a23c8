"""Follows an "add one" page: writes the files that its sections name ("## 2. `src/...`") into a folder, so that the tests
build and run what the page says. A name of the page may be replaced, in paths and contents: a reader who follows the page
has the same name in the tree.
Usage: extract_doc_code.py PAGE FOLDER [OLD=NEW]..."""
import os
import re
import sys


def sections(text):
    """(path, code) of every section whose title is a number and a path, and which shows a block."""
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        named = re.match(r"\d+\. `([^`]+)`", section)
        block = re.search(r"^```\w+\n(.*?)^```", section, flags=re.M | re.S)
        if named and block:
            yield named.group(1), block.group(1)


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path) and open(path).read() == content:
        return  # nothing is built again for nothing
    with open(path, "w") as file:
        file.write(content)


def main():
    page, folder, *renames = sys.argv[1:]
    with open(page) as file:
        found = list(sections(file.read()))
    if not found:
        sys.exit(f"{page}: no section names a file and shows it")
    for path, content in found:
        for rename in renames:
            old, new = rename.split("=")
            path, content = path.replace(old, new), content.replace(old, new)
        write(os.path.join(folder, path), content)


if __name__ == "__main__":
    main()
