"""Follows docs/extend/add-a-vendor.md: writes the files that its sections name into a folder, so that the tests build and run
what the page says. Usage: extract_doc_vendor.py PAGE FOLDER"""
import os
import re
import sys

page, folder = sys.argv[1:]
with open(page) as file:
    text = file.read()
written = []
for section in re.split(r"^## ", text, flags=re.M)[1:]:
    named = re.match(r"\d+\. `([^`]+)`", section)
    block = re.search(r"^```\w+\n(.*?)^```", section, flags=re.M | re.S)
    if not named or not block:
        continue
    path = os.path.join(folder, named.group(1))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path) or open(path).read() != block.group(1):  # nothing is built again for nothing
        with open(path, "w") as file:
            file.write(block.group(1))
    written.append(named.group(1))
if written != ["vendors/acme/plugin/acme.cpp", "vendors/acme/simplenet/config_acme1x1x1.yaml",
               "vendors/acme/vendor.yaml", "vendors/acme/environment"]:
    sys.exit(f"{page}: expected sections for the plugin and the vendor's three files, found {written}")
