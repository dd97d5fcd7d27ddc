# SPDX-License-Identifier: MIT
"""Libraries' own tests of themselves, as scripts/conformance.py wants a suite.

Three that wrap threads, signals, processes and blocking calls for others, each
in its way: libuv and APR, from the distribution's source packages, and the
modules of CPython, those of the python3 that runs this.
"""

import os
import pathlib
import platform
import sys
import sysconfig

from source_package import Unavailable, compile_errors, fetch, run

TITLE = "The tests of libuv, APR and CPython"
VERDICTS = {0: "PASS", 1: "FAIL", 2: "FAIL", 4: "UNTESTED", 7: "UNSUPPORTED"}
RESULTS = pathlib.Path(__file__).resolve().parent / "RESULTS"
LONGEST = 300.0

# Modules of CPython's with threads, signals, processes, or calls that wait.
MODULES = """
asyncio asyncore atexit audit bufio builtin capi cmd_line concurrent_futures contextlib
dbm devpoll docxmlrpc eintr embed epoll faulthandler fcntl file fileio fork1 ftplib gc
getpass glob httpservers imaplib importlib io ioctl largefile lockf logging mmap
multiprocessing_fork multiprocessing_forkserver multiprocessing_main_handling
multiprocessing_spawn openpty os pdb pipes poll poplib posix pty pwd queue readline
resource sched select selectors shutil signal smtplib socket socketserver sqlite3 ssl
subprocess syslog tempfile thread threadedtempfile threading threading_local
threadsignals time timeout urllib2_localnet wait3 wait4 weakref wsgiref xmlrpc
""".split()


def built(program, folder, *commands):
    """The program in this folder, made by the commands if need be."""
    if not program.exists():
        folder.mkdir(exist_ok=True)
        for command in commands:
            done = run(command, cwd=folder)
            if done.returncode:
                raise Unavailable(f"{folder}: {command[0]}: {compile_errors(done.stderr)}")
    return program


def libuv(place, jobs):
    version, source = fetch("libuv1", place)
    folder = source / "build"
    program = built(folder / "uv_run_tests", folder, ["cmake", ".."],
                    ["make", f"-j{jobs}", "uv_run_tests"])
    command = ["env", "UV_RUN_AS_ROOT=1", str(program)]
    names = [line.split()[0] for line in run([*command, "--list"]).stdout.splitlines()]
    return version, [(f"libuv/{name}", [*command, name], folder) for name in names]


def apr(place, jobs):
    version, source = fetch("apr", place)
    folder = source / "made"
    program = built(folder / "test/testall", folder, ["../configure"],
                    ["make", f"-j{jobs}"], ["make", f"-j{jobs}", "-C", "test"])
    listed = run([program, "-l"], cwd=program.parent).stdout
    return version, [(f"apr/{name}", [str(program), name], program.parent)
                     for name in listed.split()]


def cpython(place):
    """Where there is vsock and nobody at its other end, its tests never end."""
    folder = place / "cpython"
    folder.mkdir(exist_ok=True)
    every = pathlib.Path(sysconfig.get_path("stdlib")) / "test"
    tests = [(f"cpython/{name}",
              [sys.executable, "-m", "test", "-i", "*VSOCK*", f"test_{name}"], folder)
             for name in MODULES
             if (every / f"test_{name}.py").exists() or (every / f"test_{name}").is_dir()]
    version = platform.python_version()
    if not tests:
        version += f" (without its tests: libpython{version.rpartition('.')[0]}-testsuite)"
    return f"CPython {version}", tests


def starves(command):
    """libuv and APR use the same ports in all of their tests."""
    return "-m" not in command


def prepare(build, jobs, wanted):
    """Returns (version, [(name, command, folder to run it in)], {}); see posix/suite.py."""
    place = build.resolve() / "libraries"
    place.mkdir(parents=True, exist_ok=True)
    os.environ.pop("PYTHONPATH", None)
    parts = [libuv(place, jobs), apr(place, jobs), cpython(place)]
    return (", ".join(version for version, _ in parts),
            [test for _, tests in parts for test in tests if wanted(test[0])], {})
