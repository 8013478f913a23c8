"""What cmake --install and cpack make: programs that find each other, their plugins and the cases, away from the build."""
import shutil
import subprocess
import unittest

from support import BIN, CliTest, SOURCE

BUILD = BIN.parent


class InstallTest(CliTest):
    def setUp(self):
        super().setUp()
        self.prefix = self.folder / "prefix"
        self.work = self.folder / "elsewhere"
        self.work.mkdir()
        self.must("cmake", "--install", BUILD, "--prefix", self.prefix)

    def must(self, *command, **more):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, **more)
        self.assertEqual(done.returncode, 0, f"{command}\n--- out\n{done.stdout}\n--- err\n{done.stderr}")
        return done.stdout

    def installed(self, *words):
        environment = {name: value for name, value in self.environment().items() if name != "ASSAY_HOME"}
        return self.must(self.prefix / "bin/assay", *words, cwd=self.work, env=environment)

    def test_finds_cases_worker_and_plugins(self):
        self.assertIn("simplenet", self.installed("cases"))
        self.installed("train", "simplenet", "--step", "2")
        self.assertTrue((self.work / "runs").is_dir())
        self.installed("check", "vendor", "reference")
        self.must(self.prefix / "bin/assay-worker", "check-plugin", "reference", cwd=self.work)

    def test_installs_nothing_that_names_the_build_folder(self):
        for program in sorted((self.prefix / "lib/assay").glob("assay*")):
            dynamic = self.must("readelf", "-d", program)
            self.assertNotIn(str(SOURCE), dynamic, program)

    @unittest.skipUnless(shutil.which("dpkg-shlibdeps"), "needs dpkg-dev")
    def test_packages_depend_on_what_they_load(self):
        out = self.folder / "packages"
        self.must("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", out)
        packages = {self.must("dpkg-deb", "-f", file, "Package").strip(): file for file in sorted(out.glob("*.deb"))}
        self.assertEqual(sorted(packages), ["assay", "assay-worker"])
        control = self.must("dpkg-deb", "-f", packages["assay"], "Depends")
        self.assertIn("libyaml-cpp", control)
        self.assertNotIn("torch", control)
        worker = self.must("dpkg-deb", "-f", packages["assay-worker"], "Depends")
        for name in ("assay (= ", "libtorch", "libopenblas0-openmp"):
            self.assertIn(name, worker)
        files = self.must("dpkg-deb", "-c", packages["assay"])
        for name in ("./usr/bin/assay -> ../lib/assay/assay", "./usr/share/assay/cases/simplenet/case.yaml",
                     "./usr/share/doc/assay/copyright"):
            self.assertIn(name, files)


if __name__ == "__main__":
    unittest.main()
