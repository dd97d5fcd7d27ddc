#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs the servers under FlexSC-Threads for minutes: `make soak`.

    scripts/soak.py --build build [--seconds N] [--load N] [--hogs N] [--record FILE]

Round after round of tests/servers, each load lasting --load seconds, beside
more processes that only spin than there are processors. Every other round has
a carrier on each processor. Ends with the first failure, or when the time is
over.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SPIN = "while :; do :; done"


def start_hogs(nr):
    return [subprocess.Popen(["sh", "-c", SPIN], stdin=subprocess.DEVNULL)
            for _ in range(nr)]


def run_round(number, flexsc, load, failures):
    """Cases that passed; what failed is added to @failures with its output."""
    passed = 0
    for test in sorted((ROOT / "tests" / "servers").glob("*-test.py")):
        command = ["/usr/bin/python3", str(test), flexsc, "--only", "threads",
                   "--seconds", str(load)]
        if number % 2 == 0:
            command += ["--option=--cores", "--option=1"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        passed += sum(line.startswith("ok ") and "# SKIP" not in line
                      for line in done.stdout.splitlines())
        if done.returncode:
            failures.append(" ".join(command) + "\n" + done.stdout + done.stderr)
        print(f"round {number}: {test.name}: "
              f"{'FAILED' if done.returncode else 'passed'}", flush=True)
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--seconds", type=int, default=600, help="at least so long")
    parser.add_argument("--load", type=int, default=5, help="seconds of each load")
    parser.add_argument("--hogs", type=int, default=2 * os.cpu_count() + 1)
    parser.add_argument("--record", help="file for the result")
    args = parser.parse_args()
    flexsc = str(pathlib.Path(args.build).resolve() / "cli" / "flexsc")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begin, number, passed, failures = time.monotonic(), 0, 0, []
    hogs = start_hogs(args.hogs)
    try:
        while not failures and time.monotonic() - begin < args.seconds:
            number += 1
            passed += run_round(number, flexsc, args.load, failures)
    finally:
        for hog in hogs:
            hog.kill()
    result = (f"soak: {number} rounds, {time.monotonic() - begin:.0f} s beside {args.hogs} "
              f"spinning processes on {os.cpu_count()} processors: {passed} cases passed, "
              f"{len(failures)} test programs failed")
    print("\n".join([*failures, result]))
    if args.record:
        pathlib.Path(args.record).write_text(result + "\n")
    return 1 if failures or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
