"""Which libtorch the build takes: Debian's, or the one that CMAKE_PREFIX_PATH names; never the headers of one with the
library of another."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from support import SOURCE

VERSION_HEADER = "include/torch/csrc/api/include/torch/version.h"


def debian_file(pattern):
    listed = subprocess.run(["dpkg-query", "-L", "libtorch-dev"], check=True, capture_output=True, text=True).stdout
    return next(line for line in listed.splitlines() if line.endswith(pattern))


def configure(*arguments):
    with tempfile.TemporaryDirectory(prefix="assay-test-") as build:
        done = subprocess.run(["cmake", "-G", "Ninja", "-S", SOURCE / "tests/cmake/libtorch", "-B", build, *arguments], capture_output=True,
                              text=True, env={k: v for k, v in os.environ.items() if not k.startswith("Torch")})
    return done.returncode, " ".join((done.stdout + done.stderr).split())


class LibtorchTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="assay-test-")
        self.addCleanup(holder.cleanup)
        self.other = pathlib.Path(holder.name) / "libtorch"

    def make_other(self, library=True):
        """A libtorch 9.8.7 in a folder of its own, laid out as PyTorch's, with the TorchConfig.cmake that libtorch has.
        The targets beside it, which are made for one prefix, are written anew."""
        config = pathlib.Path(debian_file("/TorchConfig.cmake")).parent
        shutil.copytree(config, self.other / "share/cmake/Torch")
        (self.other / "share/cmake/Caffe2").mkdir()
        (self.other / "share/cmake/Caffe2/Caffe2Config.cmake").write_text(
            "add_library(torch SHARED IMPORTED)\nadd_library(c10 SHARED IMPORTED)\nset(Caffe2_MAIN_LIBS torch)\n")
        text = (self.other / "share/cmake/Torch/TorchConfig.cmake").read_text()
        (self.other / "share/cmake/Torch/TorchConfig.cmake").write_text(text.replace("/../../../../", "/../../../"))
        header = self.other / VERSION_HEADER
        header.parent.mkdir(parents=True)
        header.write_text("#define TORCH_VERSION_MAJOR 9\n#define TORCH_VERSION_MINOR 8\n#define TORCH_VERSION_PATCH 7\n")
        if library:
            (self.other / "lib").mkdir()
            for name in ("libtorch.so", "libc10.so"):
                shutil.copy(os.path.realpath(debian_file("/" + name)), self.other / "lib" / name)

    def test_takes_debians_by_itself(self):
        code, output = configure()
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"libtorch 1\.13\.\d+: headers /usr/include, library /usr/lib/\S+/libtorch\.so")

    def test_takes_headers_and_library_of_the_one_that_is_named(self):
        self.make_other()
        for prefix in (self.other / "share/cmake", self.other, f"{self.other}/share/cmake;{self.other}"):
            code, output = configure(f"-DCMAKE_PREFIX_PATH={prefix}")
            self.assertEqual(code, 0, output)
            self.assertIn(f"libtorch 9.8.7: headers {self.other}/include, library {self.other}/lib/libtorch.so", output)

    def test_refuses_headers_without_their_library(self):
        self.make_other(library=False)
        code, output = configure(f"-DCMAKE_PREFIX_PATH={self.other}/share/cmake")
        self.assertNotEqual(code, 0, output)
        self.assertIn(f"Two different libtorch: headers 9.8.7 in {self.other}/include, but /usr/lib/", output)

    def test_refuses_a_libtorch_without_headers(self):
        self.make_other()
        (self.other / VERSION_HEADER).unlink()
        code, output = configure(f"-DCMAKE_PREFIX_PATH={self.other}")
        self.assertNotEqual(code, 0, output)
        self.assertIn("this libtorch is not complete", output)


if __name__ == "__main__":
    unittest.main()
