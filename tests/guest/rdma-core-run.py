#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""In the virtual machine: rdma-core's own tests, one line a test.

  rdma-core-run.py DEVICE GID_INDEX [--only=PART | --without=PART] MODULE_OR_TEST...

PART is a part of the names of the tests to run, or not to run.

Each line is "result TEST OUTCOME SECONDS [what it said]" with tabs between; an
outcome is pass, skip, fail or error. The last line is "done NUMBER". The tests'
random choices depend on their names only. A test that failed is tried once
more: some give their peer half a second, which is little under emulation.
"""
import argparse
import os
import random
import signal
import sys
import time
import unittest
from importlib.machinery import SourceFileLoader

TESTS = "/usr/src/rdma-core/tests"
# Under emulation the longest needs about 20 s.
LIMIT = 90


class TooLong(Exception):
    """A test did not end."""


def too_long(_signal, _frame):
    raise TooLong(f"no end after {LIMIT} s")


class Report(unittest.TestResult):
    """The outcome of one test, the last thing it said."""

    outcome, text = "pass", ""

    def startTest(self, test):
        super().startTest(test)
        random.seed(test.id())
        signal.alarm(LIMIT)

    def stopTest(self, test):
        signal.alarm(0)
        super().stopTest(test)

    def addError(self, test, err):
        super().addError(test, err)
        self.outcome, self.text = "error", f"{err[0].__name__}: {err[1]}"

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.outcome, self.text = "fail", f"{err[0].__name__}: {err[1]}"

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.outcome, self.text = "skip", reason


def tests_of(suite):
    """The tests in suites of suites."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def run(test):
    """Runs a test, again if it fails, and prints its outcome."""
    since = time.monotonic()
    for trial in ("", "at the second try"):
        report = Report()
        unittest.TestSuite([test]).run(report)
        text = " ".join(f"{trial} {report.text}".split())
        if report.outcome in ("pass", "skip"):
            break
    name = test.id().removeprefix("tests.")
    print(f"result\t{name}\t{report.outcome}\t{time.monotonic() - since:.1f}\t{text}", flush=True)


def main():
    ours = argparse.ArgumentParser()
    ours.add_argument("device")
    ours.add_argument("gid")
    ours.add_argument("--only", default="")
    ours.add_argument("--without")
    ours.add_argument("names", nargs="+")
    args = ours.parse_args()
    sys.path.insert(0, TESTS)
    sys.argv[1:] = ["--dev", args.device, "--port", "1", "--gid", args.gid]
    from args_parser import parser
    SourceFileLoader("tests", os.path.join(TESTS, "__init__.py")).load_module()
    parser.parse_args()
    signal.signal(signal.SIGALRM, too_long)
    loader = unittest.TestLoader()
    tests = [
        test
        for test in tests_of(loader.loadTestsFromNames([f"tests.{name}" for name in args.names]))
        if args.only in test.id() and not (args.without and args.without in test.id())
    ]
    for test in tests:
        run(test)
    print(f"done\t{len(tests)}")


main()
