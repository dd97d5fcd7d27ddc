#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""flexsc doctor PID and flexsc run --verbose: who is on FlexSC, who is not, why.

    tests/check-activation.py FLEXSC THREADS CC...     THREADS is tests/threads/seen.c
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

from observing import skip_unless_observing

FLEXSC, THREADS, CC = sys.argv[1], sys.argv[2], sys.argv[3:]


class Activation(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.said = os.path.join(folder.name, "said")
        self.static = os.path.join(folder.name, "static")
        source = "#include <unistd.h>\nint main(void) { return pause(); }\n"
        subprocess.run([*CC, "-static", "-x", "c", "-o", self.static, "-"], input=source,
                       text=True, check=True)

    def start(self, *command, env=None):
        """In a session of its own, so that all of it can be ended."""
        with open(self.said, "wb") as said:
            process = subprocess.Popen(command, start_new_session=True, stderr=said,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       env=dict(os.environ, **(env or {})))
        self.addCleanup(process.wait)
        self.addCleanup(os.killpg, process.pid, 9)
        return process

    def doctor(self, pid, enough):
        """{program: what is said of it}, once all that is wanted is there."""
        end = time.monotonic() + 40
        while True:
            done = subprocess.run([FLEXSC, "doctor", "--json", str(pid)], text=True,
                                  stdout=subprocess.PIPE, check=True, timeout=60)
            seen = {one["program"]: one for one in
                    map(json.loads, done.stdout.splitlines())}
            if enough(seen):
                return seen
            self.assertLess(time.monotonic(), end, seen)
            time.sleep(0.05)

    def test_tree(self):
        tree = f"{THREADS} & {self.static} & env -i sleep 1000 & cat /dev/zero >/dev/null"
        process = self.start(FLEXSC, "run", "--verbose", "--", "sh", "-c", tree)
        seen = self.doctor(process.pid, lambda seen: set(seen) >= {
            "sh", "static", "sleep", "cat"} and
            seen.get("threads-seen", {}).get("state") == "FlexSC-Threads")
        states = {name: one["state"] for name, one in seen.items()}
        self.assertEqual(states, {"sh": "no threads yet", "cat": "no threads yet",
                                  "threads-seen": "FlexSC-Threads",
                                  "static": "not loaded", "sleep": "not loaded"})
        self.assertIn("engine poll", seen["threads-seen"]["reason"])
        self.assertIn("it is statically linked", seen["static"]["reason"])
        self.assertIn("environment does not ask", seen["sleep"]["reason"])
        self.assertEqual(seen["cat"]["parent"], process.pid)
        with open(self.said, encoding="utf-8") as said:
            lines = said.read().splitlines()
        self.assertEqual(len(lines), 1, lines)
        pid = seen["threads-seen"]["pid"]
        self.assertIn(f"threads-seen ({pid}): on FlexSC-Threads, engine poll", lines[0])

    def test_declined(self):
        """What could not work says so at once, and later to who asks."""
        process = self.start(FLEXSC, "run", "--", THREADS, env={"FLEXSC_ENGINE": "none"})
        seen = self.doctor(process.pid, lambda seen: seen.get("threads-seen", {}).get(
            "state") == "declined")
        self.assertIn("Invalid argument", seen["threads-seen"]["reason"])
        with open(self.said, encoding="utf-8") as said:
            self.assertIn("running without FlexSC-Threads", said.read())
        done = subprocess.run([FLEXSC, "stat", "--prometheus", str(process.pid)], text=True,
                              capture_output=True, check=False, timeout=60)
        self.assertIn("runs without FlexSC-Threads: Invalid argument", done.stderr)

    def test_usage(self):
        for words, status in ((["2147483646"], 1), (["x"], 64), (["1", "2"], 64)):
            done = subprocess.run([FLEXSC, "doctor", *words], capture_output=True,
                                  check=False, timeout=60)
            self.assertEqual(done.returncode, status, words)


if __name__ == "__main__":
    skip_unless_observing()
    unittest.main(argv=sys.argv[:1])
