"""The reports as other programs read them: JUnit by XML parsers, result.json by Python, Markdown tables by their bars."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import report_data

BIN = pathlib.Path(os.environ["ASSAY_BIN"])


def render(result, folder):
    """Writes the reports of a result into the folder; returns what the program printed."""
    source = pathlib.Path(folder) / "source.json"
    source.write_text(json.dumps(result))
    done = subprocess.run([BIN / "assay_render_report", source, folder], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


class ReportFormats(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="assay-report.")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def test_sums_up_the_cases_in_junit(self):
        for make in (report_data.demo, report_data.failing, report_data.empty, report_data.hostile):
            with self.subTest(make.__name__):
                result = make()
                render(result, self.folder)
                root = ElementTree.parse(self.folder / "junit.xml").getroot()
                self.assertEqual(root.tag, "testsuites")
                suites = root.findall("testsuite")
                self.assertEqual(len(suites), 1)
                cases = suites[0].findall("testcase")
                for element in (root, suites[0]):
                    self.assertEqual(int(element.get("tests")), len(cases))
                    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
                        self.assertEqual(int(element.get(attribute)), sum(c.find(tag) is not None for c in cases))
                    total = sum(float(c.get("time", 0)) for c in cases)
                    self.assertAlmostEqual(float(element.get("time")), total, places=2)
                wanted = len(result["steps"]) + len(result["verdicts"])
                self.assertEqual(len(cases), max(wanted, 1))
                red = sum(c.find("failure") is not None or c.find("error") is not None for c in cases)
                self.assertEqual(red == 0, result["outcome"] == "Pass")

    def test_writes_well_formed_junit(self):
        for make in (report_data.demo, report_data.hostile):
            render(make(), self.folder)
            done = subprocess.run(["xmllint", "--noout", self.folder / "junit.xml"], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_keeps_foreign_text_as_text_in_junit(self):
        render(report_data.hostile(), self.folder)
        root = ElementTree.parse(self.folder / "junit.xml").getroot()
        tags = {element.tag for element in root.iter()}
        self.assertLessEqual(tags, {"testsuites", "testsuite", "properties", "property", "testcase", "failure", "error",
                                    "skipped", "system-out"})
        name = root.find("testsuite").find("testcase").get("name")
        self.assertTrue(name.startswith("1-</script></style></title><script>"), name)

    def test_round_trips_result_json(self):
        for make in (report_data.demo, report_data.failing, report_data.empty):
            result = make()
            render(result, self.folder)
            written = json.loads((self.folder / "result.json").read_text(), parse_constant=self.fail)
            self.assertEqual({**written, "seconds": 0}, {**result, "seconds": 0})

    def test_writes_markdown_rows_with_all_columns(self):
        for make in (report_data.demo, report_data.failing, report_data.hostile):
            render(make(), self.folder)
            columns = None
            fence = None
            for line in (self.folder / "report.md").read_text().splitlines():
                opening = re.match(r"(`{3,})(text)?$", line)
                if opening:
                    fence = None if fence == opening[1] else fence or opening[1]
                if fence or not line.startswith("|"):
                    columns = None
                    continue
                found = len(re.findall(r"(?<!\\)\|", line))
                columns = columns or found
                self.assertEqual(found, columns, line)

    def test_prints_no_control_characters(self):
        printed = render(report_data.hostile(), self.folder)
        self.assertEqual([c for c in printed if ord(c) < 32 and c != "\n"], [])

    def test_rejects_a_wrong_result_with_its_place(self):
        result = report_data.demo()
        result["steps"][2]["outcome"] = "Great"
        source = self.folder / "bad.json"
        source.write_text(json.dumps(result))
        done = subprocess.run([BIN / "assay_render_report", source, self.folder / "out"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("steps[2].outcome", done.stderr)
        self.assertFalse((self.folder / "out").exists())


if __name__ == "__main__":
    unittest.main()
