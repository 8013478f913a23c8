"""A new machine has what script/packages.txt lists and nothing else: every file outside the tree that the build opened,
every library that the programs load and every program that scripts and tests start belongs to a package of the groups
that script/run and script/test install."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from support import BIN, SOURCE

sys.path.insert(0, str(SOURCE / "tests"))
from debian_packages import Packages, group_packages, make_path, programs_of  # noqa: E402

BUILD = BIN.parent
RUN_GROUPS = ["build", "demo"]
TEST_GROUPS = [*RUN_GROUPS, "test", "data"]
# Written by packages when they are installed, so that no package owns them.
GENERATED = re.compile(r"/etc/(ld\.so\.cache|alternatives/)|/usr/share/mime/|/var/cache/")
WRITTEN_BY_BOOTSTRAP = {"/usr/sbin/policy-rc.d"}


def ninja(*arguments):
    return subprocess.run(["ninja", "-C", BUILD, *arguments], check=True, capture_output=True, text=True).stdout


def outside(paths):
    """Absolute paths of files that are neither in the source tree nor in the build folder."""
    own = (str(SOURCE) + "/", str(BUILD) + "/", "/proc/", "/sys/", "/dev/")
    normal = {os.path.normpath(os.path.join(BUILD, path)) for path in paths}
    return sorted(path for path in normal if not path.startswith(own) and os.path.isfile(path))


def objects_of_tests(line):
    return line.startswith(("tests/", "bench/"))


def opened_headers(of_tests):
    """What the compiler read, from ninja's log of dependencies."""
    found, counts = set(), False
    for line in ninja("-t", "deps").splitlines():
        if not line.startswith(" "):
            counts = objects_of_tests(line) == of_tests
        elif counts and line.strip():
            found.add(line.strip())
    return found


def linked_files(of_tests):
    """Libraries on the command lines of the linker."""
    target = ["all"] if of_tests else ["programs"]
    return set(re.findall(r"(?<=\s)(/\S+\.(?:so[.\d]*|a))(?=\s|$)", ninja("-t", "commands", *target)))


def cmake_files():
    """What CMake read to configure; a change of one configures again, so ninja knows them."""
    inputs = ninja("-t", "query", "build.ninja").split("outputs:")[0]
    return {line.strip(" |") for line in inputs.splitlines() if line.strip(" |").startswith("/")}


def loaded_libraries(program):
    text = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"(/\S+)\s+\(0x", text))


class PackagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.packages = Packages()
        cls.of_run = cls.packages.closure(group_packages(RUN_GROUPS))
        cls.of_test = cls.packages.closure(group_packages(TEST_GROUPS))

    def strangers(self, paths, allowed):
        return {path: package for path, package in self.packages.owner(outside(paths)).items()
                if package not in allowed and not GENERATED.match(path)}

    def assert_declared(self, paths, allowed, at_least):
        self.assertGreater(len(outside(paths)), at_least, "found too little: the check looks in the wrong place")
        self.assertEqual(self.strangers(paths, allowed), {},
                         "files of packages that script/packages.txt does not bring; None: of no package")

    def test_compiles_the_programs_from_declared_packages(self):
        self.assert_declared(opened_headers(of_tests=False), self.of_run, 1000)

    def test_compiles_the_tests_from_declared_packages(self):
        self.assert_declared(opened_headers(of_tests=True), self.of_test, 1000)

    def test_links_the_programs_with_declared_packages(self):
        self.assert_declared(linked_files(of_tests=False), self.of_run, 10)

    def test_links_the_tests_with_declared_packages(self):
        self.assert_declared(linked_files(of_tests=True), self.of_test, 10)

    def test_configures_with_declared_packages(self):
        self.assert_declared(cmake_files(), self.of_test, 50)

    def test_loads_declared_libraries(self):
        programs = [path for path in BIN.iterdir() if path.is_file() and os.access(path, os.X_OK)]
        ours = [path for path in programs if path.name in ("assay", "assay-worker", "assay-images", "assay_sentencepiece.so")]
        self.assertEqual(len(ours), 4, programs)
        self.assert_declared(set().union(*map(loaded_libraries, ours)), self.of_run, 50)

    def test_finds_a_package_outside_the_groups(self):
        without = self.packages.closure([name for name in group_packages(RUN_GROUPS) if name != "libcli11-dev"])
        found = self.strangers(opened_headers(of_tests=False), without)
        self.assertEqual(set(found.values()), {"libcli11-dev"})

    def test_starts_declared_programs_alone_in_script_run(self):
        """The tree is built, so this is script/run without the compiler, whose files the other tests follow."""
        with tempfile.TemporaryDirectory(prefix="assay-test-") as folder:
            path = pathlib.Path(folder) / "programs"
            make_path(path, RUN_GROUPS)
            done = subprocess.run([SOURCE / "script/run", "--dry-run"], cwd=folder, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, env={**os.environ, "PATH": str(path), "ASSAY_RUNS": folder + "/runs"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_declares_programs_named_by_their_path(self):
        """script/test gives the tests a PATH of declared programs alone; this finds what goes round it."""
        named = set()
        for folder in ("script", "tests", "bench", "src", "apps"):
            for path in sorted((SOURCE / folder).rglob("*")):
                if path.is_file() and path.suffix in ("", ".py", ".cpp", ".h", ".sh"):
                    named |= set(re.findall(r"[\"'!\s=](/(?:usr/)?s?bin/[a-z][\w.+-]*)", path.read_text(errors="replace")))
        self.assertIn("/usr/sbin/sshd", named)
        programs = set(programs_of(self.packages, self.of_test).values())
        real = {os.path.realpath(program) for program in programs}
        there = {name for name in named - WRITTEN_BY_BOOTSTRAP if os.path.exists(name)}
        self.assertEqual({name for name in there if os.path.realpath(name) not in real}, set())

    def test_runs_the_tests_with_declared_programs_alone(self):
        """By script/test; ctest started by hand has the machine's own PATH."""
        if "ASSAY_DECLARED_PROGRAMS" not in os.environ:
            self.skipTest("not started by script/test")
        self.assertEqual(os.environ["PATH"], os.environ["ASSAY_DECLARED_PROGRAMS"])


if __name__ == "__main__":
    unittest.main()
