"""assay check vendor: one line a check, all problems at once, and the vendors of this repository pass."""
import json
import os
import unittest

import support


class CheckVendorTest(support.CliTest):
    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def test_passes_the_vendors_of_this_repository(self):
        done = self.assay("check", "vendor")
        for vendor in ("cpu", "nvidia", "ascend", "reference"):
            self.assertIn(f"pass  {vendor} vendor.yaml", done.stdout)
        for size in ("1x1", "1x8", "2x8"):
            for case in ("resnet", "bert", "gpt"):
                self.assertIn(f"pass  nvidia {case}/config_A100x{size}", done.stdout)
        self.assertNotIn("FAIL", done.stdout)
        self.assertRegex(self.assay("check", "vendor", "cpu").stdout.splitlines()[-1], "^[1-9][0-9]* checks of 1 vendors, 0 failed$")

    def test_passes_the_vendor_of_the_documentation(self):
        folder = os.environ.get("ASSAY_DOC_VENDOR")
        if not folder:
            self.skipTest("ASSAY_DOC_VENDOR is not set")
        home = self.folder / "home"
        home.mkdir()
        (home / "cases").symlink_to(support.SOURCE / "cases")
        (home / "vendors").symlink_to(os.path.join(folder, "vendors"))
        checks = json.loads(self.assay("--home", home, "check", "vendor", "acme", "--json", expect=None).stdout)["checks"]
        passed = {check["check"]: check["passed"] for check in checks}
        self.assertTrue(passed.pop("vendor.yaml"))
        self.assertTrue(passed.pop("environment"))
        self.assertEqual(set(passed), {"plugin", "simplenet/config_acme1x1x1"})  # the tests build the plugin elsewhere

    def test_reports_problems(self):
        self.write("cases/tiny/case.yaml", support.TINY_CASE)
        self.write("vendors/acme/vendor.yaml", "name: acme\nhardware: {X1: }\nenvironment: environment\n")
        self.write("vendors/acme/tiny/config_X1x1x1.yaml", "lr: 0.5\n")
        self.write("vendors/good/vendor.yaml", "name: good\nhardware: {Y: }\n")
        self.write("vendors/good/tiny/config_Yx1x1.yaml", "")
        done = self.assay("--home", self.folder, "check", "vendor", expect=1)
        self.assertIn("vendors/acme/vendor.yaml:3: environment names", done.stdout)
        self.assertIn("vendors/acme/tiny/config_X1x1x1.yaml:1: Optimizer.lr.learning_rate is not mutable", done.stdout)
        self.assertIn("pass  good tiny/config_Yx1x1", done.stdout)
        self.assay("--home", self.folder, "check", "vendor", "good")
        found = json.loads(self.assay("--home", self.folder, "check", "vendor", "acme", "--json", expect=1).stdout)
        self.assertEqual(found["failed"], 2)
        self.assertEqual([c["check"] for c in found["checks"] if not c["passed"]], ["vendor.yaml", "tiny/config_X1x1x1"])

    def test_explains_an_unknown_vendor(self):
        self.assertIn("did you mean 'nvidia'", self.assay("check", "vendor", "nvidea", expect=2).stderr)


if __name__ == "__main__":
    unittest.main()
