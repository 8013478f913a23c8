"""Follows docs/extend/add-a-model.md: writes the files that its sections name into a folder, so that the tests build and run
what the page says. The model is called doc_twolayer there: a reader who follows the page has a model twolayer too.
Usage: extract_doc_model.py PAGE SIMPLENET_CASE FOLDER"""
import os
import re
import sys

page, case_path, folder = sys.argv[1:]
with open(page) as file:
    text = file.read()


def write(path, content):
    path = os.path.join(folder, path.replace("twolayer", "doc_twolayer"))
    content = content.replace("twolayer", "doc_twolayer")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path) and open(path).read() == content:
        return  # nothing is built again for nothing
    with open(path, "w") as file:
        file.write(content)


blocks = {}
for section in re.split(r"^## ", text, flags=re.M)[1:]:
    named = re.match(r"\d+\. `([^`]+)`", section)
    block = re.search(r"^```\w+\n(.*?)^```", section, flags=re.M | re.S)
    if named and block:
        blocks[named.group(1)] = block.group(1)
if len(blocks) != 4:
    sys.exit(f"{page}: expected four sections that name a file and show it, found {sorted(blocks)}")
for path, content in blocks.items():
    if path.startswith("src/worker/"):
        write(path[len("src/worker/"):], content)
    elif path.endswith(".py"):
        write(path, content)
    else:
        # Step 4: a copy of simplenet's case with another name and the section Model of the page.
        with open(case_path) as file:
            case = file.read()
        case = case.replace("model: simplenet", "model: twolayer")
        case = re.sub(r"^parameters: .*\n", "", case, flags=re.M)
        case = re.sub(r"^  Model:\n(    .*\n)+", lambda _: content, case, flags=re.M)
        write(path, case)
