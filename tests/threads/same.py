#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a program natively and under the library; it must do the same.

    tests/threads/same.py LIBRARY PROGRAM [ROUNDS] [--hogs N]

Output, exit status and death by a signal are compared, ROUNDS (10) times;
with --hogs, N processes that only compute are beside it.
"""

import argparse
import os
import subprocess
import sys

# An emulated processor needs more (tests/vm/inside.py).
LIMIT_S = max(60, float(os.environ.get("FLEXSC_TEST_TIMEOUT", 0)))


def run(program, env):
    try:
        done = subprocess.run([program], env=env, capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as late:
        return "hung", (late.stdout or b"").decode() + (late.stderr or b"").decode()
    return done.returncode, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("program")
    parser.add_argument("rounds", nargs="?", type=int, default=10)
    parser.add_argument("--hogs", type=int, default=0)
    args = parser.parse_args()
    env = {k: v for k, v in os.environ.items() if not k.startswith("FLEXSC")}
    under = dict(env, LD_PRELOAD=args.library,
                 GLIBC_TUNABLES="glibc.pthread.rseq=0")
    expected = run(args.program, env)
    if expected[0] != 0:
        print(f"natively: {expected[0]}\n{expected[1]}")
        return 1
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(args.hogs)]
    try:
        for number in range(args.rounds):
            got = run(args.program, dict(under, FLEXSC_CORES=str(number % 3)))
            if got != expected:
                print(f"round {number}, FLEXSC_CORES={number % 3}: "
                      f"{got[0]} instead of {expected[0]}\n"
                      f"--- natively\n{expected[1]}--- under the library\n{got[1]}")
                return 1
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    # Where it cannot start the program runs all the same, after a word on it.
    refused = run(args.program, dict(under, FLEXSC_ENGINE="none", FLEXSC_QUIET="1"))
    if refused != expected:
        print(f"not started: {refused[0]} instead of {expected[0]}\n{refused[1]}")
        return 1
    print(f"the same in {args.rounds} rounds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
