#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The static probes are where they are said to be, and are passed.

    tests/check-probes.py FLEXSC LIBFLEXSC LIBRARY-OF-THREADS
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

FLEXSC, LIBRARIES = sys.argv[1], sys.argv[2:4]
SCRIPTS = pathlib.Path(__file__).resolve().parent.parent / "tools/bpftrace"
CALLS, THREADS = {"post", "start", "done", "cancel"}, {"park", "wake", "switch", "handoff"}

# Two threads that send a byte to and fro, by a lock one of them, until killed.
PLAY = """
import os, threading
(a, b), (c, d) = os.pipe(), os.pipe()
lock = threading.Lock()
def play(source, target):
    while os.read(source, 1):
        with lock:
            os.write(target, b"x")
for ends in ((a, d), (c, b)):
    threading.Thread(target=play, args=ends, daemon=True).start()
os.write(b, b"x")
print("plays", flush=True)
threading.Event().wait()
"""


def notes(library):
    said = subprocess.run(["readelf", "--notes", library], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    return set(re.findall(r"Provider: flexsc\s+Name: (\w+)", said))


class Probes(unittest.TestCase):
    def play(self):
        process = subprocess.Popen([FLEXSC, "run", "--", sys.executable, "-c", PLAY],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.stdout.readline()
        return process

    def test_exist(self):
        self.assertEqual(notes(LIBRARIES[0]), CALLS)
        self.assertEqual(notes(LIBRARIES[1]), CALLS | THREADS)

    def test_passed(self):
        """A debugger stops at each of those that this program must come by."""
        if not shutil.which("gdb"):
            self.skipTest("no gdb here")
        process = self.play()
        for name, arguments in (("post", 3), ("done", 2), ("park", 3), ("wake", 2),
                                ("switch", 2)):
            words = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off",
                     "-p", str(process.pid), "-ex", f"tbreak -probe-stap flexsc:{name}",
                     "-ex", "continue", "-ex", r'printf "arguments %d\n", $_probe_argc']
            said = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=100,
                                  check=False).stdout
            if "ptrace: Operation not permitted" in said:
                self.skipTest("may not trace")
            self.assertIn(f"arguments {arguments}", said, name)
        self.assertIsNone(process.poll())

    def test_scripts(self):
        """The scripts for bpftrace have something to show."""
        if not shutil.which("bpftrace") or os.geteuid():
            self.skipTest("needs root and bpftrace")
        tried = subprocess.run(["bpftrace", "-e", "uprobe:/bin/sh:main {} BEGIN { exit(); }"],
                               capture_output=True, text=True, check=False, timeout=100)
        if tried.returncode:
            self.skipTest("this kernel has no uprobes for bpftrace")
        process = self.play()
        for script in sorted(SCRIPTS.glob("*.bt")):
            with tempfile.TemporaryFile("w+") as out, \
                    subprocess.Popen(["bpftrace", "-p", str(process.pid), script], stdout=out,
                                     stderr=subprocess.STDOUT) as tracer:
                end = time.monotonic() + 60
                while "Attaching" not in self.text(out) and time.monotonic() < end:
                    time.sleep(0.1)
                time.sleep(2)
                tracer.send_signal(signal.SIGINT)
                tracer.wait()
                said = self.text(out)
            self.assertRegex(said, r"@\w+(\[\d+\])?: \n\[", script.name)

    @staticmethod
    def text(out):
        out.seek(0)
        return out.read()


if __name__ == "__main__":
    if not notes(LIBRARIES[0]):
        print("SKIP: built without <sys/sdt.h>")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
