# SPDX-License-Identifier: MIT
"""Starting programs as they are or under FlexSC-Threads, and watching them.

A program is started in a session of its own: that is how its processes, and
nobody else's, are found again for their times, their memory and their end.
"""

import ctypes
import os
import pathlib
import random
import re
import resource
import signal
import socket
import subprocess
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = "libflexsc-threads.so"
CPUCLOCK_SCHED = 2
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
TICK = os.sysconf("SC_CLK_TCK")
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024


class Failure(Exception):
    """What went wrong, as a sentence."""


class Absent(Failure):
    """A program that is not installed."""


class Runner:
    """How a program is started: a name, what stands before it, environment."""

    def __init__(self, name, prefix=(), env=None, beside=()):
        self.name, self.prefix, self.env = name, list(prefix), dict(env or {})
        self.beside = list(beside)  # libraries preloaded for the program too

    @property
    def threads(self):
        """Is it FlexSC-Threads?"""
        return self.name != NATIVE

    def with_preload(self, *libraries):
        return Runner(self.name, self.prefix, self.env, libraries)

    def command(self, command):
        return [*self.prefix, *command]

    def environment(self, extra=None):
        env = dict(os.environ, **self.env, **(extra or {}))
        preload = [*self.beside, *env.get("LD_PRELOAD", "").split()]
        env.pop("LD_PRELOAD", None)
        if preload:
            env["LD_PRELOAD"] = " ".join(preload)
        return env


NATIVE = "NPTL"
THREADS = "FlexSC"


def native():
    return Runner(NATIVE)


def threads(flexsc, *options):
    """Under `flexsc run`; Absent in a build without it."""
    run = subprocess.run([flexsc, "run", "--help"], capture_output=True, check=False)
    if run.returncode == 0:
        return Runner(THREADS, [flexsc, "run", "--quiet", *options, "--"])
    library = pathlib.Path(flexsc).resolve().parent.parent / "src" / LIBRARY
    if not library.exists():
        raise Absent("this build has neither `flexsc run` nor " + LIBRARY)
    return Runner(THREADS, env={
        "LD_PRELOAD": str(library), "FLEXSC_QUIET": "1",
        "GLIBC_TUNABLES": "glibc.pthread.rseq=0"})


def built(port, folder, *options):
    """What ports/PORT/build says that it has made. Absent where it cannot be."""
    done = subprocess.run([TOP / "ports" / port / "build", folder, *options], check=False,
                          text=True, capture_output=True)
    if done.returncode == 77:
        raise Absent(done.stderr.strip().removeprefix("SKIP: "))
    if done.returncode:
        raise Failure(f"ports/{port}/build: {done.stderr[-2000:]}")
    return done.stdout.strip()


def find(*names):
    """The first of these programs that is installed."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/sbin"
    for name in names:
        for folder in path.split(":"):
            candidate = os.path.join(folder, name)
            if os.access(candidate, os.X_OK):
                return candidate
    raise Absent(f"{names[0]} is not installed")


def free_port():
    """Below those that clients take for themselves."""
    for _ in range(1000):
        port = random.randrange(20000, 32000)
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            try:
                tcp.bind(("127.0.0.1", port))
                udp.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise Failure("no free port")


def stat_fields(pid):
    """What stands behind the name in /proc/PID/stat: state first."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
    return text.rsplit(")", 1)[1].split()


def members_of(session):
    """Living processes of a session."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = stat_fields(name)
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] not in "ZX":
                found.append(int(name))
    return found


def clock_of(pid):
    """Seconds of processor time of a process and of its reaped children."""
    fields = stat_fields(pid)
    own = time.clock_gettime((~pid << 3) | CPUCLOCK_SCHED)
    return own + (int(fields[13]) + int(fields[14])) / TICK


def memory_kb(pid):
    """Resident and its own: files that are mapped do not count."""
    fields = pathlib.Path(f"/proc/{pid}/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * PAGE_KB


def limit_memory(pid, limited=True):
    """From now on it gets none; or as much as it likes."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    most = int(re.search(r"VmData:\s+(\d+) kB", text)[1]) * 1024 if limited else \
        resource.RLIM_INFINITY
    resource.prlimit(pid, resource.RLIMIT_DATA, (most, resource.RLIM_INFINITY))


def switches_of(pid):
    """Context switches of the threads that live."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            text = pathlib.Path(f"/proc/{pid}/task/{task}/status").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in text.splitlines()
                     if "ctxt_switches" in line)
    return total


def wait_until(true, seconds, what, every=0.02):
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise Failure(f"{what} took more than {seconds:g} s")
        time.sleep(every)


def end_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def prepare(cpus):
    """In the child: on these processors, and no longer than its parent."""
    end_with_parent()
    os.sched_setaffinity(0, cpus)


class Process:
    """A program in a session of its own, on given processors."""

    def __init__(self, runner, command, log, cpus=None, env=None, cwd=None):
        self.runner, self.log = runner, pathlib.Path(log)
        cpus = cpus or os.sched_getaffinity(0)
        with open(log, "ab") as out:
            self.popen = subprocess.Popen(
                runner.command(command), stdin=subprocess.DEVNULL, stdout=out,
                stderr=out, start_new_session=True, cwd=cwd,
                env=runner.environment(env),
                preexec_fn=lambda: prepare(cpus))
        self.pid = self.popen.pid

    def pids(self):
        return members_of(self.pid)

    def total(self, figure):
        """Of all its processes; one that ends meanwhile does not count."""
        total = 0
        for pid in self.pids():
            try:
                total += figure(pid)
            except OSError:
                continue
        return total

    def cpu_seconds(self):
        return self.total(clock_of)

    def memory_mb(self):
        return self.total(memory_kb) / 1024

    def switches(self):
        return self.total(switches_of)

    def alive(self):
        return self.popen.poll() is None

    def has_library(self):
        """Is the library in one of its processes? A preload can silently fail."""
        for pid in self.pids():
            try:
                if LIBRARY in pathlib.Path(f"/proc/{pid}/maps").read_text():
                    return True
            except OSError:
                continue
        return False

    def wait_ready(self, ready, seconds=30):
        def look():
            if not self.alive():
                raise Failure(f"{self.popen.args[0]} ended with status "
                              f"{self.popen.returncode}:\n{self.last_words()}")
            return ready()
        try:
            wait_until(look, seconds, f"the start of {self.popen.args[0]}")
        except Failure:
            self.kill()
            raise
        if self.runner.threads and not self.has_library():
            self.kill()
            raise Failure(f"{LIBRARY} is not loaded in {self.popen.args}: "
                          f"{self.last_words()}")

    def last_words(self, lines=15):
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def send(self, number):
        self.popen.send_signal(number)

    def stop(self, number=signal.SIGTERM, seconds=20):
        """Its exit status; Failure if it has to be killed."""
        if self.alive():
            self.send(number)
        try:
            status = self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        self.kill()
        if status is None:
            raise Failure(f"{self.popen.args} did not end within {seconds} s of "
                          f"signal {number}")
        return status

    def kill(self):
        """All of it, at once."""
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.popen.wait()


class Server(Process):
    """A process that can be asked whether it serves. `name` is for people."""

    name = "server"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


def accepts(port):
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(("127.0.0.1", port)) == 0
