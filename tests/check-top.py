#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""flexsc top on a terminal, and into a pipe.

    tests/check-top.py FLEXSC PROGRAM     PROGRAM is tests/threads/seen.c
"""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
import unittest

from observing import skip_unless_observing

FLEXSC, PROGRAM = sys.argv[1:3]


class Terminal:
    """A program on a terminal of its own; what it has written so far."""

    def __init__(self, *command, term="vt100", rows=24, columns=80):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ["TERM"] = term
            os.execv(command[0], command)
        self.seen = ""
        self.resize(rows, columns)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def read(self, limit_s):
        """Some more text, without what moves the cursor; False at the end."""
        if not select.select([self.fd], [], [], limit_s)[0]:
            return True
        try:
            data = os.read(self.fd, 65536).decode()
        except OSError:
            return False
        self.seen += re.sub(r"\x1b(\[[?0-9;]*[A-Za-z]|[()][A-Z0-9]|[=>78])", " ", data)
        return bool(data)

    def wait_for(self, pattern):
        end = time.monotonic() + 40
        while not re.search(pattern, self.seen):
            more = self.read(1)
            if not more or time.monotonic() > end:
                raise AssertionError(f"no {pattern} in {self.seen!r}")

    def type(self, keys):
        self.seen = ""
        os.write(self.fd, keys.encode())

    def status(self):
        while self.read(40):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Top(unittest.TestCase):
    def setUp(self):
        self.process = subprocess.Popen([FLEXSC, "run", "--", PROGRAM],
                                        stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.process.communicate)
        self.addCleanup(self.process.kill)
        self.process.stdout.readline()

    def top(self, *arguments, **more):
        terminal = Terminal(FLEXSC, "top", "--interval=0.1", *map(str, arguments), **more)
        self.addCleanup(os.close, terminal.fd)
        return terminal

    def test_process(self):
        """Its threads, calls and carriers; then back to the list, and out."""
        terminal = self.top(self.process.pid)
        terminal.wait_for(r"reads +parked +[\d.]+ \w+ +read\(\d+, \.\.\.\)")
        terminal.wait_for(r"computes +running")
        terminal.type("k")
        terminal.wait_for(r"CARRIER +PROCESSOR")
        terminal.type("c")
        terminal.wait_for(r"A SECOND +SO FAR +LATENCY +99 % IN")
        terminal.type("h")
        terminal.wait_for(r"quit")
        terminal.type("h\x1b")
        terminal.wait_for(r"Processes that use FlexSC: ")
        terminal.type("q")
        self.assertEqual(terminal.status(), 0)

    def test_sizes(self):
        """A terminal may become any size."""
        terminal = self.top(self.process.pid)
        terminal.wait_for("computes")
        for rows, columns in ((2, 3), (1, 1), (50, 300), (24, 80)):
            terminal.resize(rows, columns)
            terminal.type("ot")
            time.sleep(0.3)
            terminal.read(0)
        terminal.type("q")
        self.assertEqual(terminal.status(), 0)

    def test_ends(self):
        """The process ends: that is said, and the list is shown."""
        terminal = self.top(self.process.pid)
        terminal.wait_for("computes")
        self.process.kill()
        self.process.wait()
        terminal.wait_for("has ended")
        terminal.type("q")
        self.assertEqual(terminal.status(), 0)

    def test_terminal_goes_away(self):
        terminal = Terminal(FLEXSC, "top", "--interval=0.1", str(self.process.pid))
        terminal.wait_for("computes")
        os.close(terminal.fd)
        self.assertIn(os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]), (0, -1))

    def test_into_pipe(self):
        done = subprocess.run([FLEXSC, "top", "--interval=0.1"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, rf"\n *{self.process.pid} threads-seen +4 ")
        self.assertNotRegex(done.stdout, r"[^\n -~]")

    def test_refusals(self):
        self.assertEqual(self.top("x").status(), 64)
        self.assertEqual(self.top(2 ** 22 - 1).status(), 1)
        terminal = self.top(term="nonesuch")
        self.assertEqual(terminal.status(), 1)
        self.assertIn("'nonesuch'", terminal.seen)


if __name__ == "__main__":
    skip_unless_observing()
    unittest.main(argv=sys.argv[:1])
