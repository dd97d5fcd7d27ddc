#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""perf's call graphs of user threads, through the switch, too.

    tests/threads/perf.py FLEXSC PROGRAM     PROGRAM is traced.c
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

FLEXSC, PROGRAM = sys.argv[1:3]
# Of the C library, whose symbols may not be there: what no thread begins without.
BEGINNINGS = {"start_thread", "clone3", "__clone3", "clone", "__GI___clone3"}
# By the clock: machines without counters have that.
RECORD = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "299", "--call-graph", "dwarf,16384"]


def perf(*words, **more):
    return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=100, check=False, **more)


class Perf(unittest.TestCase):
    def stacks(self, what):
        """Functions of each sample in the thread of that name, innermost first."""
        found, end = [], time.monotonic() + 200
        with subprocess.Popen([FLEXSC, "run", "--", PROGRAM, what], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process, \
                tempfile.TemporaryDirectory() as folder:
            process.stdout.readline()
            data = os.path.join(folder, "data")
            while len(found) < 20:
                self.assertLess(time.monotonic(), end)
                done = perf(*RECORD, "-o", data, "-p", str(process.pid), "--", "sleep", "0.3")
                self.assertEqual(done.returncode, 0, done.stderr)
                said = perf("perf", "script", "-i", data, "--no-inline", "-F", "ip,sym").stdout
                for sample in said.split("\n\n"):
                    stack = [line.split()[1].split("+")[0] for line in sample.splitlines()
                             if len(line.split()) > 1]
                    if what in stack:
                        found.append(stack)
            process.kill()
        return found

    def check(self, what):
        """All but a few, of moments that the C library's own code does not describe."""
        stacks = self.stacks(what)
        broken = [stack for stack in stacks if not BEGINNINGS & set(stack)]
        self.assertLessEqual(len(broken), len(stacks) / 20, broken[:5])

    def test_switching(self):
        """Threads that park and are woken all the time."""
        self.check("plays")

    def test_busy(self):
        """One that makes calls which need not wait."""
        self.check("hurries")


if __name__ == "__main__":
    if not shutil.which("perf"):
        print("SKIP: no perf here")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as here:
        tried = perf(*RECORD, "-o", os.path.join(here, "data"), "--", "true")
    if tried.returncode:
        print("SKIP: perf may not record here:", tried.stderr.strip().split("\n")[0])
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
