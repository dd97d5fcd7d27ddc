#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""gdb sees user threads where they are, in a process and in its core file.

    tests/threads/gdb.py FLEXSC PROGRAM     PROGRAM is seen.c
"""

import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

FLEXSC, PROGRAM = map(os.path.abspath, sys.argv[1:3])
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/gdb.py"
# The function that a thread is in: from the library's part to the outermost of its
# own. The C library's are '??' where its symbols are not installed.
STACKS = {"reads_for_good": ["read", "reads_for_good", "run"],
          "waits_for_lock": ["fx_mutex_lock", "waits_for_lock", "run"],
          "computes": ["computes", "run"]}


def gdb(*commands, target):
    words = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", *target]
    for command in (f"source {SCRIPT}", *commands):
        words += ["-ex", command]
    return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=100, check=False,
                          errors="replace").stdout


def names_in_order(backtrace):
    return re.findall(r"^#\d+ +(?:0x\w+ in )?(\w+)", backtrace, re.MULTILINE)


class Gdb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.process = subprocess.Popen([FLEXSC, "run", "--", PROGRAM],
                                       stdout=subprocess.PIPE, text=True)
        cls.process.stdout.readline()
        cls.live = ["-p", str(cls.process.pid)]

    @classmethod
    def tearDownClass(cls):
        cls.process.kill()
        cls.process.communicate()

    def check_stacks(self, said):
        """What `flexsc apply all bt` prints; threads that have a name there."""
        parts = re.split(r"\n\n(?= *\d)", said)
        for name, wanted in STACKS.items():
            found = [names_in_order(part) for part in parts if name in names_in_order(part)]
            self.assertEqual(len(found), 1, f"{name}\n{said}")
            rest = iter(found[0])
            self.assertTrue(all(function in rest for function in wanted), said)

    def test_stacks(self):
        said = gdb("flexsc apply all bt", target=self.live)
        self.check_stacks("\n" + said)
        self.assertIsNone(self.process.poll())

    def test_plain_backtrace(self):
        """Without a command of ours: the thread's own number shows its stack."""
        said = gdb("thread apply all bt", target=self.live)
        thread = next(part for part in said.split("\n\n") if '"reads"' in part)
        self.assertIn("reads_for_good", names_in_order(thread))
        self.assertNotIn("Backtrace stopped", thread)

    def test_list(self):
        said = gdb("info flexsc threads", target=self.live)
        self.assertRegex(said, r" reads +parked: read\(\d+, \.\.\.\)\n")
        self.assertRegex(said, r" waits +parked: mutex 0x[0-9a-f]+\n")
        self.assertRegex(said, r" computes +running, on carrier \d+\n")

    def test_select(self):
        said = gdb("info flexsc threads", target=self.live)
        number = re.search(r"^ *(\d+) +\d+ computes", said, re.MULTILINE).group(1)
        said = gdb(f"flexsc thread {number}", "bt", "flexsc thread 12345", target=self.live)
        self.assertIn("computes", names_in_order(said))
        self.assertIn("no user thread has the number '12345'", said)

    def test_core(self):
        with tempfile.TemporaryDirectory() as folder:
            core = os.path.join(folder, "core")
            gdb(f"generate-core-file {core}", target=self.live)
            said = gdb("flexsc apply all bt", "info flexsc threads", target=[PROGRAM, core])
        self.check_stacks("\n" + said)
        self.assertRegex(said, r"parked: read\(\d+, \.\.\.\)\n")

    def test_crash(self):
        """The same in what the kernel has left of a process that crashed."""
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        with tempfile.TemporaryDirectory() as folder:
            with subprocess.Popen([FLEXSC, "run", "--", PROGRAM], stdout=subprocess.PIPE,
                                  cwd=folder, text=True) as crashed:
                resource.prlimit(crashed.pid, resource.RLIMIT_CORE, unlimited)
                crashed.stdout.readline()
                crashed.send_signal(signal.SIGSEGV)
            cores = list(pathlib.Path(folder).glob("core*"))
            if not cores:
                self.skipTest("the kernel leaves core files elsewhere, or none")
            said = gdb("flexsc apply all bt", "info flexsc threads",
                       target=[PROGRAM, str(cores[0])])
        self.check_stacks("\n" + said)
        # A core file has no names of threads.
        self.assertRegex(said, r" parked: read\(\d+, \.\.\.\)\n")
        self.assertRegex(said, r" parked: mutex 0x[0-9a-f]+\n")


if __name__ == "__main__":
    if not shutil.which("gdb"):
        print("SKIP: no gdb here")
        sys.exit(77)
    with subprocess.Popen(["sleep", "100"]) as other:
        tried = gdb(target=["-p", str(other.pid)])
        other.kill()
    if "ptrace: Operation not permitted" in tried or "Could not" in tried:
        print("SKIP: may not trace")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
