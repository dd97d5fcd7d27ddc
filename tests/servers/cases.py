# SPDX-License-Identifier: MIT
"""Cases that must go the same on NPTL and under FlexSC-Threads; prints TAP.

A case is a function of a Stage that returns what it saw. It runs natively
first; what it sees then is what it must see under `flexsc run`. A case that
lacks a program is skipped and says which.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from servers import process  # noqa: E402  pylint: disable=wrong-import-position


class Stage:
    """Where one run of a case takes place, and for how long it may load."""

    def __init__(self, runner, scratch, seconds):
        self.runner, self.scratch, self.seconds = runner, pathlib.Path(scratch), seconds
        self.nr = 0

    def folder(self):
        """A new one; programs of other users may enter."""
        self.nr += 1
        folder = self.scratch / str(self.nr)
        folder.mkdir()
        folder.chmod(0o755)
        return folder

    def run(self, command, seconds=60, env=None, text=None):
        """(status, output) of a program that ends by itself."""
        with subprocess.Popen(self.runner.command(command), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=self.runner.environment(env), start_new_session=True,
                              errors="replace") as program:
            try:
                output, _ = program.communicate(text, timeout=seconds)
            except subprocess.TimeoutExpired:
                for pid in process.members_of(program.pid):
                    os.kill(pid, 9)
                output, _ = program.communicate()
                raise process.Failure(f"{command[0]} did not end within {seconds} s:\n"
                                      f"{output[-2000:]}") from None
        return program.returncode, output


def expect(true, text):
    if not true:
        raise process.Failure(text)


def play(case, runner, seconds):
    scratch = tempfile.mkdtemp(prefix="flexsc-case-")
    os.chmod(scratch, 0o755)
    try:
        return case(Stage(runner, scratch, seconds))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def attempt(case, runners, seconds):
    """(verdict, comment) where the verdict is ok, skip or not ok."""
    saw = None
    for runner in runners:
        try:
            now = play(case, runner, seconds)
        except process.Absent as absent:
            return "skip", str(absent)
        except Exception as error:  # pylint: disable=broad-exception-caught
            text = (str(error) if isinstance(error, process.Failure)
                    else traceback.format_exc())
            if runner is runners[0] and isinstance(error, process.Failure):
                # Nothing to compare with.
                return "skip", f"{runner.name} does not pass it itself: {text}"
            return "not ok", f"on {runner.name}: {text}"
        if runner is not runners[0] and now != saw:
            return "not ok", (f"on {runner.name} it saw\n{now!r}\nand on "
                              f"{runners[0].name}\n{saw!r}")
        saw = now
    if len(runners) == 1 and not runners[0].threads:
        return "skip", "this build has no FlexSC-Threads; natively it passed"
    return "ok", ""


def runners_of(args):
    found = [] if args.only == "threads" else [process.native()]
    if args.only != "native":
        try:
            found.append(process.threads(args.flexsc, *args.option))
        except process.Absent:
            pass
    return found


def main(*cases):
    parser = argparse.ArgumentParser()
    parser.add_argument("flexsc")
    parser.add_argument("case", nargs="*", help="only cases whose name has this in it")
    parser.add_argument("--seconds", type=int, default=1, help="of each load")
    parser.add_argument("--only", choices=("native", "threads"))
    parser.add_argument("--option", action="append", default=[], help="of flexsc run")
    args = parser.parse_args()
    cases = [case for case in cases if not args.case or
             any(part in case.__name__ for part in args.case)]
    runners = runners_of(args)
    if not runners:
        sys.exit("this build has no FlexSC-Threads")
    print(f"1..{len(cases)}", flush=True)
    bad = 0
    for number, case in enumerate(cases, 1):
        begin = time.monotonic()
        verdict, comment = attempt(case, runners, args.seconds)
        name = case.__name__.replace("_", " ")
        for line in comment.splitlines() if verdict == "not ok" else ():
            print(f"# {line}")
        word = f" # SKIP {comment}" if verdict == "skip" else ""
        print(f"{'ok' if verdict == 'skip' else verdict} {number} - {name}{word}")
        print(f"# {time.monotonic() - begin:.1f} s", flush=True)
        bad += verdict == "not ok"
    return 1 if bad else 0
