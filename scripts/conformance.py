#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a conformance suite natively and on FlexSC-Threads, and compares.

    scripts/conformance.py [--build build] [--suite posix] [--filter PATTERN...]

Every test runs on the machine's own threads and then under the library, by
default many at once, since most of them sleep. One that does worse under the
library is tried again alone, three times each way: worse every time it is a
regression, worse sometimes it is unsteady. Nothing else is judged: what fails
natively may fail under the library too. Exit status 1 if there are
regressions, 77 if the suite or the library is not to be had.

A suite is a folder tests/NAME with a suite.py: TITLE, VERDICTS (what exit
statuses mean), RESULTS (the file that keeps what a whole run found), prepare()
and Unavailable; perhaps PART (a file of names: the tests of --only-part),
LONGEST (seconds that a test may take) and starves(command): does it take the
processors from others? Those run alone, after all others.
"""

import argparse
import collections
import concurrent.futures
import datetime
import fnmatch
import importlib.util
import os
import pathlib
import platform
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
LONGEST, LONGEST_OF_PART = 100.0, 8.0  # seconds that a test may take
AGAIN = 3  # times that a test which did worse is tried alone, each way
MANY = 20  # of those: try three at once
ORDER = {"PASS": 0, "UNTESTED": 1, "UNSUPPORTED": 1, "UNRESOLVED": 2, "FAIL": 3}
WORST = 4  # crashed, timed out


def badness(verdict):
    return ORDER.get(verdict, WORST)


class Result:
    """One test: what it said natively and under the library, the latest last."""

    def __init__(self, name, command, folder, longest=LONGEST):
        self.name, self.command, self.folder = name, command, folder
        self.longest = longest
        self.native, self.ours = [], []
        self.seconds, self.output = 0.0, ""

    def worse(self):
        return bool(self.ours) and badness(self.ours[0]) > badness(self.native[0])

    def kind(self):
        """same, better, regression (worse each time) or unsteady."""
        if not self.ours:
            return "same"
        worst = max(self.native, key=badness)
        times = sum(badness(verdict) > badness(worst) for verdict in self.ours)
        if times == len(self.ours):
            return "regression"
        if times or (self.worse() and len(set(self.ours)) > 1):
            return "unsteady"
        return "same" if badness(self.ours[0]) >= badness(self.native[0]) else "better"


def environment(library):
    env = {name: value for name, value in os.environ.items()
           if not name.startswith("FLEXSC_") and name != "LD_PRELOAD"}
    return dict(env, **preload(library)) if library else env


def preload(library):
    return {"LD_PRELOAD": str(library), "FLEXSC_QUIET": "1",
            "GLIBC_TUNABLES": "glibc.pthread.rseq=0"}


def end_session(leader):
    """Kills all processes of a session: some make process groups of their own."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = pathlib.Path("/proc", pid, "stat").read_text(errors="replace")
            # pid (name) state parent group session ...
            if int(stat.rpartition(")")[2].split()[3]) == leader:
                os.kill(int(pid), signal.SIGKILL)
        except OSError:
            continue  # it has ended


def attempt(suite, result, library, limit):
    """Runs a test once; returns verdict, seconds and what it printed.

    In a session of its own, of which nothing is left afterwards.
    """
    with tempfile.TemporaryFile() as output:
        start = time.monotonic()
        with subprocess.Popen(result.command, cwd=result.folder, env=environment(library),
                              stdin=subprocess.DEVNULL, stdout=output,
                              stderr=subprocess.STDOUT, start_new_session=True) as process:
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
            seconds = time.monotonic() - start
            end_session(process.pid)
        output.seek(0)
        text = output.read(20000).decode(errors="replace")
    if status is None:
        return "TIMEOUT", seconds, text
    if status < 0:
        return signal.Signals(-status).name, seconds, text
    return suite.VERDICTS.get(status, f"STATUS {status}"), seconds, text


def try_natively(suite, result):
    verdict, seconds, _ = attempt(suite, result, None, result.longest)
    result.native.append(verdict)
    result.seconds = max(result.seconds, seconds)


def try_ours(suite, result, library):
    limit = min(3 * result.seconds + 5, result.longest)
    verdict, _, text = attempt(suite, result, library, limit)
    result.ours.append(verdict)
    if badness(verdict) > badness(result.native[0]):
        result.output = text


def run_one(suite, result, library, repeat):
    try_natively(suite, result)
    if result.native[0] == "TIMEOUT":
        return  # nothing to compare with
    for _ in range(repeat if library else 0):
        try_ours(suite, result, library)


def tried_once(suite, results, library, args):
    """The results as they come: --jobs at once, then what starves others, alone."""
    starves = getattr(suite, "starves", lambda command: False)
    alone = [result for result in results if starves(result.command)]
    beside = [result for result in results if result not in alone]
    for part, jobs in ((beside, args.jobs), (alone, 1)):
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            waiting = {pool.submit(run_one, suite, result, library, args.repeat): result
                       for result in part}
            for future in concurrent.futures.as_completed(waiting):
                future.result()
                yield waiting[future]


def run_all(suite, results, library, args):
    """All of them, then those that did worse, alone."""
    show = sys.stdout.isatty()
    for done, result in enumerate(tried_once(suite, results, library, args), 1):
        if result.kind() in ("regression", "unsteady"):
            print(("\r" if show else "") + f"{result.name}: natively "
                  f"{result.native[0]}, here {often(result.ours)}", flush=True)
        if show:
            print(f"\r{done} of {len(results)}", end="", flush=True)
        elif done % 200 == 0:
            print(f"{done} of {len(results)}", flush=True)
    if show:
        print("\r", end="")
    # Alone is surest; of many failures few come from company.
    again = [result for result in results if result.kind() in ("regression", "unsteady")]
    with concurrent.futures.ThreadPoolExecutor(3 if len(again) > MANY else 1) as pool:
        for future in [pool.submit(run_again, suite, result, library) for result in again]:
            future.result()


def run_again(suite, result, library):
    for _ in range(AGAIN):
        try_natively(suite, result)
        try_ours(suite, result, library)


# Telling ------------------------------------------------------------------------------

def often(verdicts):
    """'PASS', or 'FAIL 3, PASS 1'."""
    counts = collections.Counter(verdicts)
    if len(counts) == 1:
        return verdicts[0]
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def rows(results):
    width = max(len(result.name) for result in results)
    return [f"  {result.name:{width}}  natively {often(result.native)}; "
            f"here {often(result.ours) if result.ours else 'not tried'}" for result in results]


def totals(results):
    """A line for each verdict: how often natively, how often under the library."""
    native = collections.Counter(result.native[0] for result in results)
    ours = collections.Counter(result.ours[0] for result in results if result.ours)
    yield f"  {'':12} {'natively':>8} {'FlexSC-Threads':>14}"
    for verdict in sorted({*native, *ours}, key=lambda name: (badness(name), name)):
        yield f"  {verdict:12} {native[verdict]:8} {ours[verdict]:14}"


def summary(version, results, broken):
    """Lines for people and for the results file."""
    groups = collections.defaultdict(list)
    for result in results:
        groups[result.kind()].append(result)
    yield (f"{version}: {len(results)} tests, {len(groups['regression'])} regressions, "
           f"{len(groups['unsteady'])} unsteady, {len(broken)} do not build")
    yield from totals(results)
    for kind, title in (("regression", "Regressions"),
                        ("unsteady", "Unsteady: worse than natively now and then"),
                        ("better", "Better than natively")):
        if groups[kind]:
            yield f"{title}:"
            yield from rows(groups[kind])


def details(results, broken):
    """What only the results file needs."""
    plain = [result for result in results if result.kind() == "same" and
             badness(result.native[0])]
    if plain:
        yield "Not passed natively either:"
        yield from rows(plain)
    if broken:
        yield "Do not build here:"
        yield from (f"  {name}: {why}" for name, why in sorted(broken.items()))


def machine():
    libc = " ".join(platform.libc_ver())
    who = "root without CAP_SYS_TIME" if os.geteuid() == 0 else "an ordinary user"
    return (f"{datetime.date.today()}, Linux {platform.release()}, {libc}, "
            f"{len(os.sched_getaffinity(0))} processors, as {who}")


def say_how(results, library):
    """How each regression is repeated by hand, and how its last run ended."""
    for result in results:
        if result.kind() != "regression":
            continue
        setting = " ".join(f"{name}={shlex.quote(value)}"
                           for name, value in preload(library).items())
        print(f"\n{result.name}:\n  cd {result.folder} && env {setting} "
              f"{shlex.join(result.command)}")
        for line in result.output.splitlines()[-5:]:
            print(f"  | {line[:200]}")


# Setting up ---------------------------------------------------------------------------

def load_suite(name):
    path = ROOT / "tests" / name / "suite.py"
    spec = importlib.util.spec_from_file_location("suite", path)
    suite = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(suite)
    return suite


def selection(suite, args):
    """A function that says whether a test of this name is wanted."""
    part = None
    if args.only_part:
        part = {line.split("#")[0].strip() for line in suite.PART.read_text().splitlines()}

    def wanted(name):
        if part is not None and name not in part:
            return False
        return not args.filter or any(fnmatch.fnmatchcase(name, pattern) or
                                      fnmatch.fnmatchcase(name, pattern + "/*")
                                      for pattern in args.filter)
    return wanted


def keep_the_clock():
    """As root, begin again without the right to set the clock.

    Some tests do set it, and others on this machine live by it.
    """
    if os.geteuid() != 0 or os.environ.get("FLEXSC_CONFORMANCE") or \
       not shutil.which("setpriv"):
        return
    os.environ["FLEXSC_CONFORMANCE"] = "1"
    os.execvp("setpriv", ["setpriv", "--bounding-set", "-sys_time,-sys_boot",
                          sys.executable, *sys.argv])


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--suite", default="posix", help="a folder of tests/ (posix)")
    parser.add_argument("--library", type=pathlib.Path,
                        help="instead of BUILD/src/libflexsc-threads.so")
    parser.add_argument("--filter", action="append", metavar="PATTERN",
                        help="only tests of this name or folder; * and ? match")
    parser.add_argument("--only-part", action="store_true",
                        help="the suite's short fixed sample")
    parser.add_argument("--jobs", type=int, default=8, help="tests at once (8)")
    parser.add_argument("--repeat", type=int, default=1,
                        help="runs of each test under the library (1)")
    parser.add_argument("--list", action="store_true", help="name the tests, run none")
    parser.add_argument("--native", action="store_true",
                        help="run natively only, and tell what does not pass")
    parser.add_argument("--write", action="store_true",
                        help="keep the results in the suite's folder")
    return parser.parse_args()


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(77)


def main():
    keep_the_clock()
    args = parse()
    suite = load_suite(args.suite)
    library = (args.library or args.build / "src/libflexsc-threads.so").resolve()
    if not (library.exists() or args.native or args.list):
        skip(f"there is no {library}")
    print(f"{suite.TITLE}: fetching and building what is missing", flush=True)
    try:
        version, tests, broken = suite.prepare(args.build, len(os.sched_getaffinity(0)),
                                               selection(suite, args))
    except suite.Unavailable as why:
        skip(str(why))
    if args.list:
        print("\n".join(name for name, _, _ in tests))
        return 0
    if not tests:
        print("no test is selected", file=sys.stderr)
        return 2
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    longest = LONGEST_OF_PART if args.only_part else getattr(suite, "LONGEST", LONGEST)
    results = [Result(*test, longest) for test in tests]
    start = time.monotonic()
    run_all(suite, results, None if args.native else library, args)
    seconds = time.monotonic() - start
    lines = [machine(), *summary(version, results, broken)]
    print("\n".join([*lines, f"{seconds:.0f} s"]))
    say_how(results, library)
    if args.native:
        print("\n".join(f"  {result.name}  {result.native[0]}  {result.seconds:.1f} s"
                        for result in results if badness(result.native[0])))
    if args.write and not args.native:
        suite.RESULTS.write_text("\n".join([*lines, *details(results, broken)]) + "\n")
    return 1 if any(result.kind() == "regression" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
