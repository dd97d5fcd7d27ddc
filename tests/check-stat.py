#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""flexsc stat on processes whose threads do what is known.

    tests/check-stat.py FLEXSC
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

from observing import skip_unless_observing

FLEXSC = sys.argv[1]
QUIET = dict(os.environ, FLEXSC_QUIET="1")

# Three threads that wait for good, with names; then one line.
WAITING = """
import ctypes, os, threading, time
libc = ctypes.CDLL(None)
libc.pthread_self.restype = ctypes.c_ulong
lock, (r, w) = threading.Lock(), os.pipe()
lock.acquire()
def named(name, what):
    libc.pthread_setname_np(ctypes.c_ulong(libc.pthread_self()), name)
    what()
for name, what in ((b"reader", lambda: os.read(r, 1)), (b"locker", lock.acquire),
                   (b"sleeper", lambda: time.sleep(1000))):
    threading.Thread(target=named, args=(name, what), daemon=True).start()
print(r, flush=True)
"""


def stat(*arguments, **more):
    return subprocess.run([FLEXSC, "stat", *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, timeout=60, **more)


class Stat(unittest.TestCase):
    def start(self, script, *run):
        """A process, and the first line that it prints."""
        process = subprocess.Popen([FLEXSC, "run", *run, "--", sys.executable, "-c", script],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process, process.stdout.readline().strip()

    def look(self, process, enough):
        """One JSON object, as soon as enough(threads by name) is true."""
        end = time.monotonic() + 30
        while True:
            done = stat("--json", "--interval=0.05", "--count=1", process.pid)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            seen = json.loads(done.stdout)
            threads = {thread["name"]: thread for thread in seen.get("threads", [])}
            if enough(threads):
                return seen, threads
            self.assertLess(time.monotonic(), end, seen)

    def waiting(self):
        process, fd = self.start(WAITING + "import sys; sys.stdin.read()")
        seen, threads = self.look(process, lambda threads: all(
            threads.get(name, {}).get("state") == "parked"
            for name in ("reader", "locker", "sleeper")))
        return process, int(fd), seen, threads

    def test_waits(self):
        """Every thread, by name, with what it waits for, and for how long."""
        process, fd, seen, threads = self.waiting()
        self.assertEqual((seen["pid"], seen["counts"]["created"]), (process.pid, 3))
        reader = threads["reader"]
        self.assertEqual((reader["call"], reader["args"][0]), ("read", fd))
        self.assertIn(threads["locker"]["for"], ("semaphore", "condition", "futex"))
        self.assertTrue(threads["locker"]["object"].startswith("0x"))
        time.sleep(0.3)
        _, later = self.look(process, lambda threads: True)
        self.assertGreater(later["reader"]["ms"], reader["ms"])
        self.assertEqual({thread["tid"] for thread in later.values()} -
                         set(map(int, os.listdir(f"/proc/{process.pid}/task"))), set())

    def test_text(self):
        process, _, _, _ = self.waiting()
        done = stat("-i", "0.1", "-c", "2", process.pid)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count("on FlexSC-Threads"), 2)
        self.assertRegex(done.stdout, r"parked for read +1\n")
        self.assertNotRegex(done.stdout, r"[^\n -~]")

    def test_prometheus(self):
        """Every line is a comment or a sample, each sample's family declared."""
        process, _, _, _ = self.waiting()
        done = stat("--prometheus", process.pid)
        families = set()
        for line in done.stdout.splitlines():
            if line.startswith("# TYPE "):
                families.add(line.split()[2])
            elif not line.startswith("# HELP "):
                match = re.fullmatch(r'(\w+?)(_bucket|_sum|_count)?\{(\w+="[^"]*",?)+\} [\d.]+', line)
                self.assertTrue(match, line)
                self.assertIn(match.group(1), families)
        self.assertIn(f'flexsc_threads{{pid="{process.pid}",program="', done.stdout)
        self.assertRegex(done.stdout, r'state="parked"\} 3\n')

    def test_latency(self):
        """How long calls take, from when it is asked for on."""
        process, _ = self.start("""
import os, threading, time
def sleeps():
    while True:
        time.sleep(0.005)
        os.stat("/")
threading.Thread(target=sleeps, daemon=True).start()
print("sleeps", flush=True)
import sys; sys.stdin.read()""")
        end = time.monotonic() + 60
        while "clock_nanosleep" not in (latency := self.look(process, lambda _: True)[0]
                                        .get("latency", {})):
            self.assertLess(time.monotonic(), end)
        slept = latency["clock_nanosleep"]
        self.assertGreaterEqual(slept["mean"], 0.005)
        self.assertGreaterEqual(slept["99_percent_in"], slept["half_in"])
        done = stat("--prometheus", process.pid)
        count = re.search(r'call_seconds_count{.*"clock_nanosleep"} (\d+)', done.stdout)
        self.assertGreaterEqual(int(count.group(1)), slept["calls"])
        self.assertRegex(done.stdout, r'_bucket{.*"clock_nanosleep",le="\+Inf"} ' +
                         count.group(1) + "\n")
        self.assertRegex(stat(process.pid).stdout, r"newfstatat .* us, 99 % in ")

    def test_few_of_many(self):
        """Who makes many calls has few of them timed, long ones as well as short ones."""
        process, _ = self.start("""
import os, threading, time
fd = os.open("/dev/zero", os.O_RDONLY)
def hurries():
    while True:
        os.pread(fd, 1, 0)
def sleeps():
    while True:
        time.sleep(0.02)
for what in [hurries] + 50 * [sleeps]:
    threading.Thread(target=what, daemon=True).start()
print("hurries", flush=True)
import sys; sys.stdin.read()""")
        with subprocess.Popen([FLEXSC, "stat", "--json", "-i", "0.5", str(process.pid)],
                              stdout=subprocess.PIPE, text=True) as observer:
            end, last = time.monotonic() + 60, ""
            while not self.few_of_many(last):
                self.assertLess(time.monotonic(), end, last)
                last = observer.stdout.readline()
            observer.kill()

    def few_of_many(self, line):
        """All calls are timed until it is known how many there are, which may change."""
        seen = json.loads(line or "{}")
        latency = seen.get("latency", {})
        if not {"clock_nanosleep", "pread64"} <= set(latency):
            return False
        self.assertGreaterEqual(latency["clock_nanosleep"]["mean"], 0.02)
        return latency["pread64"]["calls"] < seen["calls_per_second"] * seen["seconds"] / 3

    NEW_PIDS = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")

    def in_container(self, *words):
        if os.geteuid() or subprocess.run([*self.NEW_PIDS, "true"], check=False,
                                          capture_output=True).returncode:
            self.skipTest("no namespaces of processes here")
        process = subprocess.Popen([*self.NEW_PIDS, *words], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdin.close(),
                                 process.stdout.close()))
        return process

    def test_container(self):
        """From outside of it: threads by the numbers that they have here."""
        process = self.in_container(FLEXSC, "run", "--", sys.executable, "-c",
                                    WAITING + "import sys; sys.stdin.read()")
        process.stdout.readline()
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
            process.pid = int(file.read())
        _, threads = self.look(process, lambda threads: all(
            threads.get(name, {}).get("state") == "parked"
            for name in ("reader", "locker", "sleeper")))
        for name in ("reader", "locker", "sleeper"):
            with open(f"/proc/{process.pid}/task/{threads[name]['tid']}/comm",
                      encoding="ascii") as file:
                self.assertEqual(file.read(), name + "\n")

    def test_inside_container(self):
        """By its root, with the numbers of there."""
        process = self.in_container(sys.executable, "-c", f"""
import subprocess, sys
with subprocess.Popen([{FLEXSC!r}, "run", "--", sys.executable, "-c", {WAITING!r} +
                       "import sys; sys.stdin.read()"],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
    process.stdout.readline()
    print(process.pid, flush=True)
    while sys.stdin.readline():
        print(subprocess.run([{FLEXSC!r}, "stat", "-j", "-c1", "-i0.05", str(process.pid)],
                             stdout=subprocess.PIPE, text=True).stdout, end="", flush=True)
    process.kill()
""")
        pid, end = int(process.stdout.readline()), time.monotonic() + 60
        threads = {}
        while threads.get("reader", {}).get("state") != "parked":
            self.assertLess(time.monotonic(), end, threads)
            process.stdin.write("again\n")
            process.stdin.flush()
            seen = json.loads(process.stdout.readline())
            threads = {thread["name"]: thread for thread in seen.get("threads", [])}
        self.assertEqual(seen["pid"], pid)
        self.assertLess(max(thread["tid"] for thread in threads.values()), 1000)

    def test_deadlock(self):
        """Two threads that wait for each other's mutex: which, and that it lasts."""
        process, addresses = self.start("""
import ctypes, threading
libc = ctypes.CDLL(None)
mutexes = [ctypes.create_string_buffer(64) for _ in range(2)]
both = threading.Barrier(2)
libc.pthread_self.restype = ctypes.c_ulong
def locks(own, other):
    libc.pthread_setname_np(ctypes.c_ulong(libc.pthread_self()), b"locks%d" % own)
    libc.pthread_mutex_lock(mutexes[own])
    both.wait()
    libc.pthread_mutex_lock(mutexes[other])
for own in range(2):
    threading.Thread(target=locks, args=(own, 1 - own), daemon=True).start()
print(*(hex(ctypes.addressof(mutex)) for mutex in mutexes), flush=True)
import sys; sys.stdin.read()""")
        _, threads = self.look(process, lambda threads: all(
            threads.get(name, {}).get("for") == "mutex" for name in ("locks0", "locks1")))
        self.assertEqual([threads[name]["object"] for name in ("locks1", "locks0")],
                         addresses.split())
        time.sleep(0.3)
        _, later = self.look(process, lambda _: True)
        for name in ("locks0", "locks1"):
            self.assertEqual(later[name]["state"], "parked")
            self.assertGreater(later[name]["ms"], threads[name]["ms"])

    def test_stopped(self):
        """A process that does nothing is looked at like any other."""
        process, _, _, _ = self.waiting()
        process.send_signal(signal.SIGSTOP)
        _, threads = self.look(process, lambda threads: True)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(threads["reader"]["state"], "parked")

    def test_forked(self):
        """A child without threads has nothing of its parent's."""
        process, line = self.start(
            WAITING.replace("print(r", "print(os.fork() or time.sleep(1000)") +
            "import sys; sys.stdin.read()")
        child = int(line)
        self.addCleanup(os.kill, child, signal.SIGKILL)
        self.look(process, lambda threads: {"reader", "locker", "sleeper"} <= set(threads))
        done = stat("--prometheus", child)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("has made no thread yet", done.stderr)

    def test_ends(self):
        process, _, _, _ = self.waiting()
        with subprocess.Popen([FLEXSC, "stat", "--json", "-i", "0.05", str(process.pid)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as observer:
            observer.stdout.readline()
            process.kill()
            process.wait()
            _, said = observer.communicate(timeout=30)
        self.assertEqual(observer.returncode, 1)
        self.assertIn("has ended", said)

    def test_reasons(self):
        """Why there is nothing to see."""
        self.assertIn("no such process", stat(2 ** 22 - 1).stderr)
        with subprocess.Popen(["sleep", "1000"]) as plain:
            self.assertIn("start it with `flexsc run`", stat(plain.pid).stderr)
            plain.kill()
        process, _, _, _ = self.waiting()
        if os.geteuid() == 0:
            done = stat(process.pid, user="nobody")
            if done.returncode == 127:  # of the dynamic linker
                self.skipTest("nobody may not look into the build folder")
            self.assertEqual(done.returncode, 1)
            self.assertIn("not permitted", done.stderr)

    def test_usage(self):
        for arguments in ((), ("x",), ("1", "2"), ("--interval=0", "1"), ("-j", "-p", "1")):
            self.assertEqual(stat(*arguments).returncode, 64, arguments)


if __name__ == "__main__":
    skip_unless_observing()
    unittest.main(argv=sys.argv[:1])
