#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""flexsc trace beside strace, and what becomes of it when it is killed.

    tests/check-trace.py FLEXSC PROGRAM CP      PROGRAM is tests/threads/traced.c,
                                                CP examples/cp.c
"""

import ctypes
import functools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from observing import skip_unless_observing

FLEXSC, PROGRAM, CP = map(os.path.abspath, sys.argv[1:4])
LINE = re.compile(r"(?:\[pid +\d+\] |\d+ +)?(.*)")
# What differs from run to run, or is the C library's own; the columns go with it.
CHANGES = (
    (r"0x[57]\w{6,}", "POINTER"), (r"htons\([1-9]\d*\)", "htons(PORT)"),
    (r"^((?:gett?p?p?id|getpgrp|getpgid|getsid|times|shmget)\(.*\)) += \d+$", r"\1 = NUMBER"),
    (r"^(kill|shmat)\(\d+", r"\1(NUMBER"), (r"(_u?s?time={tv_sec)=.*?}", r"\1=T}"),
    (r"(si_pid|tms_utime|tms_stime)=\d+", r"\1=NUMBER"), (r'(getrandom\()".*?"', r"\1BYTES"),
    (r"SA_RESTORER\|?", ""), (", sa_restorer=POINTER", ""), (r"sa_flags=}", "sa_flags=0}"),
    (r" += ", " = "),
)


class Trace(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def trace(self, *words, status=0, tool=(FLEXSC, "trace", "-q"), text=None):
        """What it writes into a file, by lines."""
        file = os.path.join(self.folder, "trace")
        done = subprocess.run([*tool, "-o", file, *words], cwd=self.folder, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr if text is None else text), (status, ""))
        with open(file, encoding="ascii") as lines:
            said = lines.read()
        self.assertNotRegex(said, r"[^\n -~]")
        return said.splitlines()

    @staticmethod
    def between(lines):
        """The calls between the two marks, without who made them."""
        calls = [LINE.fullmatch(line).group(1) for line in lines]
        marks = [n for n, line in enumerate(calls) if re.match(r"close\(-[12]\)", line)]
        return [functools.reduce(lambda text, change: re.sub(*change, text), CHANGES, line)
                for line in calls[marks[0] + 1:marks[1]]]

    def test_as_strace(self):
        """The same lines, to the letter."""
        if not shutil.which("strace"):
            self.skipTest("no strace here")
        wanted = subprocess.run(["strace", "-f", "-o", "wanted", PROGRAM], cwd=self.folder,
                                check=False, capture_output=True, text=True)
        if wanted.returncode:
            self.skipTest("strace may not trace here")
        with open(os.path.join(self.folder, "wanted"), encoding="ascii") as lines:
            wanted = self.between(lines.read().splitlines())
        self.maxDiff = None
        seen = self.between(self.trace("-f", PROGRAM))
        self.assertGreater(len(wanted), 200)
        # To the letter as strace 6.1 has it; others have more names for flags.
        if " 6.1\n" not in subprocess.run(["strace", "-V"], check=False, capture_output=True,
                                          text=True).stdout:
            self.assertEqual(len(seen), len(wanted))
            wanted = [ours if ours.split("(")[0] == line.split("(")[0] else line
                      for ours, line in zip(seen, wanted)]
        self.assertEqual(seen, wanted)

    def test_filters(self):
        """Sets, names, all but those, and by how they end."""
        def names(*words):
            return {re.match(r"\w+", call).group() for call in
                    self.between(["close(-1)", *(LINE.fullmatch(line).group(1) for line in
                                                 self.trace(*words, PROGRAM)
                                                 if "+++" not in line), "close(-2)"])}
        self.assertEqual(names("-e", "trace=lseek,fsync"), {"lseek", "fsync"})
        self.assertEqual(names("-e", "%network") & {"accept4", "bind", "read", "openat"},
                         {"accept4", "bind"})
        self.assertLessEqual({"openat", "mkdir", "unlink"}, names("-e", "trace=file"))
        self.assertNotIn("read", names("-e", "trace=!%desc"))
        self.assertIn("mkdir", names("-e", "trace=!%desc"))
        failed = [line for line in self.trace("-Z", PROGRAM) if "+++" not in line]
        self.assertTrue(all("= -1 E" in line for line in failed), failed)
        self.assertGreater(len(failed), 3)
        self.assertFalse([line for line in self.trace("-z", PROGRAM) if "= -1 E" in line])

    def test_table(self):
        lines = self.trace("-c", PROGRAM)
        self.assertEqual(lines[0].split(), "% time seconds usecs/call calls errors syscall".split())
        rows = {line.split()[-1]: line.split() for line in lines[2:]}
        self.assertEqual(rows["fsync"][3], "1")
        self.assertEqual(rows["sendmsg"][3], "1")
        self.assertEqual(rows["openat"][4], "2")
        self.assertEqual(int(rows["total"][3]),
                         sum(int(row[3]) for name, row in rows.items()
                             if row[0][0] != "-" and name != "total"))

    @staticmethod
    def write_and_wait(process, nr):
        """Bytes, for each of which it makes 100 calls."""
        process.stdin.write("x" * nr)
        process.stdin.flush()
        for _ in range(nr):
            process.stdout.readline()

    def test_table_attached(self):
        """From then on, and all of them, however fast they come."""
        process = self.start("dies")
        self.write_and_wait(process, 2)
        file = os.path.join(self.folder, "table")
        tracer = self.attach(process, "-c", "-o", file)
        self.write_and_wait(process, 50)
        tracer.send_signal(signal.SIGINT)
        self.assertEqual(tracer.wait(timeout=60), 0)
        with open(file, encoding="ascii") as lines:
            rows = {line.split()[-1]: line.split() for line in lines.read().splitlines()[2:]}
        self.assertEqual(rows["lseek"][3:], ["5000", "5000", "lseek"])

    def test_times(self):
        lines = self.trace("-tt", "-T", PROGRAM)
        for line in lines:
            if "+++" not in line and "= ?" not in line:
                self.assertRegex(line, r"\d\d:\d\d:\d\d\.\d{6} .* <\d+\.\d{6}>$")
        sleep = next(line for line in lines if "nanosleep" in line)
        self.assertGreaterEqual(float(re.search(r"<(.*)>", sleep).group(1)), 0.001)

    def test_lengths(self):
        """-s, and text longer than that."""
        text = "\n".join(self.trace("-s", "5", PROGRAM))
        self.assertIn('write(61, "hello"..., ', text)
        self.assertIn('"hello \\1\\2 3\\r\\n\\"quoted\\\\\\" and a long line\\n\\0", ',
                      "\n".join(self.trace("-s", "100", PROGRAM)))

    def test_status(self):
        """The program's end is its own."""
        self.assertEqual(self.trace(PROGRAM, "signal", status=-signal.SIGTERM)[-1],
                         "+++ killed by SIGTERM +++")
        self.assertIn("+++ exited with 7 +++", self.trace(PROGRAM, "exits", "7", status=7)[-1])
        done = subprocess.run([FLEXSC, "trace", "-q", "/nonexistent"], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 127)
        self.assertIn("'/nonexistent': No such file", done.stderr)

    def test_children(self):
        """They are seen with -f, and only then."""
        lines = self.trace("-f", PROGRAM, "fork")
        self.assertGreater(len(self.between(lines)), 70)
        self.assertEqual(len({line.split()[0] for line in lines}), 3)
        lines = self.trace(PROGRAM, "fork")
        self.assertEqual([line for line in lines if "close(-1" in line], [])

    def test_killed_children(self):
        """How they ended, their parent is told, and nobody else."""
        for words in ((), ("-e", "trace=lseek")):
            ends = [line.split(None, 1)[1] for line in self.trace("-f", *words, PROGRAM, "kills")
                    if "+++" in line]
            self.assertEqual(ends, ["+++ killed by SIGKILL +++", "+++ killed by SIGUSR1 +++",
                                    "+++ exited with 0 +++"])

    def test_signals(self):
        """What handlers get, and how threads and processes end, as strace has it."""
        if not shutil.which("strace"):
            self.skipTest("no strace here")
        wanted = subprocess.run(["strace", "-f", "-o", "wanted", PROGRAM, "signals"],
                                cwd=self.folder, check=False, capture_output=True)
        if wanted.returncode:
            self.skipTest("strace may not trace here")
        with open(os.path.join(self.folder, "wanted"), encoding="ascii") as lines:
            wanted = lines.read().splitlines()

        def told(lines):
            found = [LINE.fullmatch(line).group(1) for line in lines]
            found = [re.sub(r"pid=\d+", "pid=PID", re.sub(r"time=\d+", "time=T", line))
                     for line in found if re.match(r"---|\+\+\+|exit", line)]
            # Another one's line may be in the way of exit's, whose order is by chance.
            found = [re.sub(r"(exit\w*\(\d+).*", r"\1", line) for line in found]
            return (sorted(line for line in found if "---" not in line),
                    [line for line in found if "---" in line])
        self.maxDiff = None
        lines = self.trace("-f", PROGRAM, "signals")
        self.assertEqual(told(lines), told(wanted))
        self.assertEqual(len(told(lines)[1]), 5)
        lines = self.trace("-e", "trace=none", "-e", "signal=usr1,SIGCHLD", PROGRAM, "signals")
        self.assertEqual(re.findall(r"--- (\w+)", "\n".join(lines)),
                         ["SIGUSR1", "SIGCHLD"])

    def start(self, *words, **more):
        process = subprocess.Popen([FLEXSC, "run", "--", PROGRAM, *words], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdin.close(),
                                 process.stdout.close()))
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def attach(self, process, *words, **more):
        """A tracer, and what it writes, from when it is attached on."""
        tracer = subprocess.Popen([FLEXSC, "trace", *words, "-p", str(process.pid)], text=True,
                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)
        limit = threading.Timer(100, tracer.kill)
        limit.start()
        self.addCleanup(lambda: (limit.cancel(), tracer.kill(), tracer.wait(),
                                 tracer.stderr.close()))
        for line in tracer.stderr:
            if "attached" in line:
                break
        return tracer

    @staticmethod
    def wait_for(tracer, pattern):
        for line in tracer.stderr:
            if re.search(pattern, line):
                return
        raise AssertionError(f"no {pattern}")

    def test_attach(self):
        """Who waits already is shown, goes on, and is shown to."""
        process = self.start("waits")
        end = time.monotonic() + 60
        while '"call":"read"' not in subprocess.run(
                [FLEXSC, "stat", "-j", "-c1", "-i0.02", str(process.pid)], check=True,
                stdout=subprocess.PIPE, text=True).stdout.replace(" ", ""):
            self.assertLess(time.monotonic(), end)
        tracer = self.attach(process)
        process.stdin.write("x")
        process.stdin.flush()
        self.wait_for(tracer, r"read\(\d+, +<unfinished")
        self.wait_for(tracer, r'<\.\.\. read resumed>"x", 1\) += 1$')
        tracer.send_signal(signal.SIGINT)
        tracer.communicate(timeout=60)
        self.assertEqual(tracer.returncode, 0)
        process.stdin.close()
        self.assertEqual(process.wait(timeout=60), 0)

    def test_last_calls(self):
        """What a process did just before it was killed, which was there before."""
        process = self.start("dies")
        file = os.path.join(self.folder, "trace")
        tracer = self.attach(process, "-e", "trace=lseek,kill", "-o", file)
        end, said = time.monotonic() + 60, ""
        process.stdin.write("x")
        process.stdin.flush()
        while "lseek(100, 99," not in said:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
            with open(file, encoding="ascii") as lines:
                said = lines.read()
        process.stdin.write("k")
        process.stdin.flush()
        self.assertEqual(tracer.wait(timeout=60), 0)
        with open(file, encoding="ascii") as lines:
            said = lines.read()
        self.assertEqual(said.count("lseek(100, "), 200)
        self.assertRegex(said, r"kill\(\d+, SIGKILL")

    def wait_for_rings(self, pid):
        """They take memory."""
        end = time.monotonic() + 60
        while self.ring_kb(pid) <= 64:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def wait_for_lapse(self, pid):
        """Nobody is asked for any more, and the memory of the rings is back."""
        end = time.monotonic() + 60
        while self.is_asked(pid) or self.ring_kb(pid) > 64:
            self.assertLess(time.monotonic(), end, self.ring_kb(pid))
            time.sleep(0.05)

    def test_killed(self):
        """A tracer that is killed leaves nothing: soon nobody is asked for."""
        process = self.start("hurries")
        for _ in range(2):
            tracer = self.attach(process, "-e", "trace=read")
            self.wait_for(tracer, r'read\(\d+, "\\0\\0')
            self.wait_for_rings(process.pid)
            tracer.kill()
            tracer.wait()
            self.wait_for_lapse(process.pid)
        self.assertIsNone(process.poll())

    def test_killed_starter(self):
        """So with one that has started the program: that goes on, unrecorded."""
        tracer = subprocess.Popen([FLEXSC, "trace", "-q", "-o",
                                   os.path.join(self.folder, "trace"), PROGRAM, "hurries"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (tracer.stdin.close(), tracer.stdout.close()))
        self.assertEqual(tracer.stdout.readline(), "ready\n")
        with open(f"/proc/{tracer.pid}/task/{tracer.pid}/children", encoding="ascii") as file:
            pid = int(file.read())
        self.wait_for_rings(pid)
        tracer.kill()
        tracer.wait()
        self.wait_for_lapse(pid)
        os.kill(pid, 0)

    def test_stopped(self):
        """The process goes on while nobody reads; what is lost is said."""
        process = self.start("hurries")
        tracer = self.attach(process, "-o", os.path.join(self.folder, "trace"))
        tracer.send_signal(signal.SIGSTOP)
        end, before = time.monotonic() + 60, self.written(process.pid)
        while self.written(process.pid) - before < 3 << 20:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        tracer.send_signal(signal.SIGCONT)
        self.wait_for(tracer, r"\d+ records were lost")

    def test_starved(self):
        """One that gets no processor for longer than it asks for misses nothing."""
        tracer = subprocess.Popen([FLEXSC, "trace", "-q", "-e", "trace=lseek", "-o",
                                   os.path.join(self.folder, "trace"), PROGRAM, "hurries"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (tracer.kill(), tracer.communicate()))
        self.assertEqual(tracer.stdout.readline(), "ready\n")
        tracer.send_signal(signal.SIGSTOP)
        time.sleep(4)  # more than FLEXSC_TRACE_LEASE_MS
        tracer.send_signal(signal.SIGCONT)
        self.assertEqual((tracer.communicate(timeout=60)[1], tracer.returncode), ("", 0))

    def test_libflexsc(self):
        """Posted calls of a program that has a loop of its own."""
        source = os.path.join(self.folder, "from")
        with open(source, "w", encoding="ascii") as file:
            file.write("some text\n" * 10)
        text = "\n".join(self.trace(CP, source, os.path.join(self.folder, "to")))
        self.assertRegex(text, rf'open(at)?\((AT_FDCWD, )?"{source}", O_RDONLY')
        fds = re.findall(r"open\(.* = (\d+)$", text, re.MULTILINE)
        self.assertRegex(text, rf"sendfile\({fds[1]}, {fds[0]}, NULL, 100\) += 100\n")
        self.assertRegex(text, r"close\(<result>\) += \?\n")

    def test_nothing(self):
        """A program that is not there, one that cannot be seen, bad words."""
        with subprocess.Popen(["sleep", "1000"]) as plain:
            done = subprocess.run([FLEXSC, "trace", "-p", str(plain.pid)], capture_output=True,
                                  text=True, check=False, timeout=60)
            self.assertIn("start it with `flexsc run`", done.stderr)
            plain.kill()
        for words in ((), ("-p", "x"), ("-e", "trace=nonsense", "true"), ("-s", "-1", "true"),
                      ("-p", "1", "true"), ("-e", "fault=all", "true")):
            done = subprocess.run([FLEXSC, "trace", *words], capture_output=True, check=False)
            self.assertEqual(done.returncode, 64, words)

    def test_ordinary_user(self):
        """It may look at what is its own."""
        if os.geteuid():
            self.skipTest("all the other tests do so")
        process = self.start("waits", user="nobody")
        tracer = self.attach(process, user="nobody")
        process.stdin.write("x")
        process.stdin.flush()
        self.wait_for(tracer, r"read\(\d+, +<unfinished")
        self.wait_for(tracer, r'"x", 1\) += 1$')
        for words in (("stat", "-j", "-c1", "-i0.05"), ("doctor", "--json")):
            done = subprocess.run([FLEXSC, *words, str(process.pid)], capture_output=True,
                                  text=True, check=False, user="nobody", timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(str(process.pid), done.stdout)

    NEW_PIDS = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")

    def in_container(self, *words):
        """A process whose child is the first one of a namespace of its own."""
        if os.geteuid() or subprocess.run([*self.NEW_PIDS, "true"], check=False,
                                          capture_output=True).returncode:
            self.skipTest("no namespaces of processes here")
        process = subprocess.Popen([*self.NEW_PIDS, *words], text=True, cwd=self.folder,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def test_container(self):
        """From outside of it, threads by the numbers that they have here."""
        process = self.in_container(FLEXSC, "run", "--", PROGRAM, "waits")
        self.assertEqual(process.stdout.readline(), "ready\n")
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
            process.pid = int(file.read())
        tracer = self.attach(process, "-f", "-o", os.path.join(self.folder, "trace"))
        process.stdin.write("x")
        process.stdin.flush()
        end, lines = time.monotonic() + 60, ""
        while '"x", 1) ' not in lines:
            self.assertLess(time.monotonic(), end, lines)
            with open(os.path.join(self.folder, "trace"), encoding="ascii") as file:
                lines = file.read()
        self.assertLessEqual({line.split()[0] for line in lines.splitlines()},
                             set(os.listdir(f"/proc/{process.pid}/task")))
        tracer.send_signal(signal.SIGINT)
        self.assertEqual(tracer.wait(timeout=60), 0)

    def test_inside_container(self):
        """There, with the numbers of there."""
        process = self.in_container(FLEXSC, "trace", "-f", "-q", PROGRAM)
        lines = process.communicate(timeout=60)[1].splitlines()
        self.assertEqual(process.returncode, 0)
        self.assertGreater(len(self.between(lines)), 70)
        numbers = set(re.findall(r"^\[pid +(\d+)\]", "\n".join(lines), re.MULTILINE))
        self.assertLess(max(map(int, numbers)), 1000)

    def test_other_user(self):
        if os.geteuid():
            self.skipTest("needs root")
        process = self.start("waits")
        done = subprocess.run([FLEXSC, "trace", "-p", str(process.pid)], capture_output=True,
                              text=True, check=False, user="nobody", timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("not permitted", done.stderr)

    # What <flexsc/counters.h> and <flexsc/trace.h> say, by offsets.

    @staticmethod
    def peek(pid, address, size):
        data = ctypes.create_string_buffer(size)
        class Part(ctypes.Structure):
            _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
        got = ctypes.CDLL(None).process_vm_readv(
            pid, ctypes.byref(Part(ctypes.addressof(data), size)), 1,
            ctypes.byref(Part(address, size)), 1, 0)
        return data.raw if got == size else bytes(size)

    def number(self, pid, address, size=8):
        return int.from_bytes(self.peek(pid, address, size), "little")

    def record_of(self, pid):
        """Where its struct flexsc_trace is."""
        with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
            counters = next(line for line in maps if "flexsc-counters" in line)
        return self.number(pid, int(counters.split("-")[0], 16) + 32)

    def is_asked(self, pid):
        return self.number(pid, self.number(pid, self.record_of(pid) + 24), 4)

    def ring_kb(self, pid):
        """How much memory the rings take."""
        rings, kb, found = self.number(pid, self.record_of(pid) + 112), 0, False
        with open(f"/proc/{pid}/smaps", encoding="ascii") as maps:
            for line in maps:
                borders = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
                if borders:
                    begin, end = (int(border, 16) for border in borders.groups())
                    found = begin <= rings < end
                elif found and line.startswith("Rss:"):
                    kb += int(line.split()[1])
        return kb

    def written(self, pid):
        rings = self.number(pid, self.record_of(pid) + 112)
        return max(self.number(pid, rings + 64 * n + 16) for n in range(2)) if rings else 0


if __name__ == "__main__":
    skip_unless_observing()
    unittest.main(argv=sys.argv[:1])
