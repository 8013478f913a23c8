"""Runs the tests of one file that are marked with @long_test, and no others: long_tests.py tests/cli/mesh_test.py.
Exit code 77, which ctest shows as a skip: one of them was skipped."""
import importlib.util
import os
import pathlib
import sys
import unittest

os.environ["ASSAY_LONG_TESTS"] = "1"  # before support.py reads it

SKIPPED = 77


def load(path):
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


def is_long(test):
    method = getattr(test, test._testMethodName)
    return getattr(method, "is_long_test", False) or getattr(type(test), "is_long_test", False)


def main():
    module = load(pathlib.Path(sys.argv[1]).resolve())
    if reason := getattr(module, "missing", lambda: None)():
        print(f"skipped: {reason}")
        return SKIPPED
    tests = [test for test in flatten(unittest.defaultTestLoader.loadTestsFromModule(module)) if is_long(test)]
    if not tests:
        print(f"{sys.argv[1]}: no test is marked with @long_test")
        return 1
    result = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite(tests))
    if not result.wasSuccessful():
        return 1
    return SKIPPED if result.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
