#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs many tests in the machine of tools/vm-run and sums them up as TAP.

    tests/vm/inside.py [--jobs N] [--limit S] JOB...

A JOB is a command line, with assignments to the environment before it as in a
shell; with "alone" as its first word it is run when no other is. A test that
prints TAP gives its cases, another its exit status (77: skipped).
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

CASE = re.compile(r"^(not )?ok \d+ - (.*)$")
SKIPPED = 77


class Job:
    def __init__(self, line):
        words = shlex.split(line)
        self.alone, self.seconds = words[0] == "alone", 0
        words = words[self.alone:]
        split = next(i for i, word in enumerate(words) if not re.match(r"\w+=", word))
        self.environment = dict(word.split("=", 1) for word in words[:split])
        self.command = words[split:]
        parts = [pathlib.Path(word).name for word in self.command]
        self.name = " ".join([*self.environment.values(), *parts])

    def run(self, limit_s):
        """[(passed, name, what it printed)]"""
        begin = time.monotonic()
        cases = self.run_now(limit_s)
        self.seconds = time.monotonic() - begin
        return cases

    def run_now(self, limit_s):
        try:
            done = subprocess.run(self.command, env=dict(os.environ, **self.environment),
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace",
                                  timeout=limit_s, check=False)
        except subprocess.TimeoutExpired as late:
            text = (late.stdout or b"").decode(errors="replace")
            return [(False, f"{self.name}: not finished after {limit_s:g} s", text)]
        if done.returncode == SKIPPED:
            reason = (done.stdout.strip().splitlines() or ["no reason given"])[-1]
            reason = re.sub(r"^SKIP:\s*|^1\.\.0 # (SKIP )?", "", reason)
            return [(True, f"{self.name} # SKIP {reason}", "")]
        cases = [CASE.match(line) for line in done.stdout.splitlines()]
        found = [(not case.group(1), f"{self.name}: {case.group(2)}",
                  done.stdout if case.group(1) else "")
                 for case in cases if case]
        if done.returncode and all(passed for passed, _, _ in found):
            found.append((False, f"{self.name}: exit status {done.returncode}", done.stdout))
        return found or [(True, self.name, done.stdout if len(done.stdout) < 300 else "")]


def show(number, case):
    passed, name, text = case
    sys.stdout.write("".join(f"# {line}\n" for line in text.splitlines()[-60:]))
    print(f"{'' if passed else 'not '}ok {number} - {name}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=5)
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS")
    parser.add_argument("job", nargs="+")
    options = parser.parse_args()
    # An emulated processor is some ten times slower than a real one.
    os.environ.setdefault("FLEXSC_TEST_TIMEOUT", "100")
    jobs = [Job(line) for line in options.job]
    number = failed = 0
    for alone in (False, True):
        with concurrent.futures.ThreadPoolExecutor(1 if alone else options.jobs) as pool:
            now = [job for job in jobs if job.alone == alone]
            for job, cases in zip(now, pool.map(lambda job: job.run(options.limit), now)):
                print(f"# {job.name}: {job.seconds:.1f} s")
                for case in cases:
                    number += 1
                    failed += not case[0]
                    show(number, case)
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
