#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the tests of a build directory and sums them up.

    scripts/run-tests.py [--record FILE] BUILD [MESON-TEST-ARGUMENT...]

`meson test` runs them; this adds what it leaves out: the sub-tests of a TAP
test are counted one by one, a skipped test says why, a test that never ran is
a failure, and the last line is always "N passed, N failed, N skipped". The
exit status is 0 only when something passed and nothing failed. --record leaves
the date, each test program with its result, and what failed in FILE.
"""

import json
import os
import re
import subprocess
import sys
import threading
import time

TAIL_LINES = 40
QUIET_SECONDS = 30

GOOD = {"OK", "EXPECTEDFAIL"}
TAP_LINE = re.compile(r"^(not )?ok\b\s*(\d+)?\s*(?:-\s*)?(.*)$")
TAP_NOTE = re.compile(r"\s*(?<!\\)#\s*(skip|to" r"do)\w*[:\s]*(.*)$", re.IGNORECASE)


class Outcome:
    """One line of the sum: a test, or one sub-test of a TAP test."""

    def __init__(self, name, state, reason="", log=""):
        self.name, self.state, self.reason, self.log = name, state, reason, log


def parse_tap(text):
    """[(name, state, reason, notes)] of the sub-tests in TAP output, plan excluded.

    The notes of a sub-test are what was printed as comments before its line.
    """
    found, notes = [], []
    for line in text.splitlines():
        match = TAP_LINE.match(line)
        if not match:
            notes += [line[1:].strip()] if line.startswith("#") else []
            continue
        said, notes = "\n".join(notes), []
        failed, number, name = match.groups()
        state, reason = ("failed" if failed else "passed"), ""
        note = TAP_NOTE.search(name)
        if note:
            name = name[: note.start()]
            # A failure announced as known is not a pass, nor news.
            if note.group(1).lower() == "skip" or failed:
                state, reason = "skipped", note.group(2).strip()
        found.append((name.strip() or f"#{number or len(found) + 1}", state, reason, said))
    return found


def skip_reason(stdout):
    lines = [line.strip() for line in stdout.splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith(("SKIP:", "1..0"))]
    reason = (marked or lines or ["no reason given"])[-1]
    return re.sub(r"^(SKIP:|1\.\.0\s*#?\s*(skip\w*)?:?)\s*", "", reason,
                  flags=re.IGNORECASE) or "no reason given"


def log_of(entry):
    parts = [entry.get("stdout") or "", entry.get("stderr") or ""]
    return "\n".join(part.rstrip() for part in parts if part.strip())


def outcomes_of(entry, is_tap):
    """The outcomes that one line of meson's testlog.json stands for."""
    name, result, stdout = entry["name"], entry["result"], entry.get("stdout") or ""
    name = re.sub(r"^[^:/]*(:| / )", "", name)  # the project's own name says nothing
    subs = []
    if is_tap:
        subs = [Outcome(f"{name}: {sub}", state, reason, said if state == "failed" else "")
                for sub, state, reason, said in parse_tap(stdout)]
    if result == "SKIP":
        if not any(sub.state == "skipped" for sub in subs):
            return [Outcome(name, "skipped", skip_reason(stdout))]
        return subs
    if result in GOOD:
        return subs or [Outcome(name, "passed")]
    how = "crashed, or its TAP plan was not kept" if is_tap else result.lower()
    if result == "FAIL" and entry.get("returncode"):
        how = f"exit status {entry['returncode']}"
    elif result == "TIMEOUT":
        how = f"timed out after {entry.get('duration', 0):.0f} s"
    bad = [sub for sub in subs if sub.state == "failed"]
    if not bad:
        # A crash, a time-out or a missing plan, whatever the sub-tests said.
        bad = [Outcome(name, "failed", how)]
        subs += bad
    if not bad[-1].log:
        bad[-1].log = log_of(entry)
    return subs


def selected_tests(build, args):
    """[(name, is_tap)] of the tests that these arguments select."""
    listing = subprocess.run(["meson", "introspect", "--tests", build],
                             capture_output=True, text=True, check=False)
    if listing.returncode:
        return []
    tests = json.loads(listing.stdout)
    if args:
        wanted = subprocess.run(["meson", "test", "-C", build, "--list", *args],
                                capture_output=True, text=True, check=False)
        names = {short_name(line) for line in wanted.stdout.splitlines()}
        tests = [test for test in tests if test["name"] in names]
    return [(test["name"], test.get("protocol") == "tap") for test in tests]


def short_name(listed):
    """The test's own name out of meson's "project:suite / name"."""
    return listed.split(" / ", 1)[-1].strip()


def read_log(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as log:
            lines = log.read().splitlines()
    except FileNotFoundError:
        return []
    entries = []
    for line in lines:
        try:
            entries.append(json.loads(line))
        except ValueError:
            continue  # being written
    return entries


class Heartbeat(threading.Thread):
    """Names what still runs when meson has been quiet for a while."""

    def __init__(self, tests):
        super().__init__(daemon=True)
        self.names, self.done = [name for name, _ in tests], set()
        self.last = self.start_time = time.monotonic()
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(1):
            if time.monotonic() - self.last < QUIET_SECONDS:
                continue
            self.last = time.monotonic()
            left = [name for name in self.names if name not in self.done]
            if not left:
                continue
            shown = ", ".join(left[:3]) + (", ..." if len(left) > 3 else "")
            print(f"  after {self.last - self.start_time:.0f} s: {len(left)} of "
                  f"{len(self.names)} to finish ({shown})", flush=True)


def compile_all(build):
    """Brings the build up to date; says something only when that fails."""
    done = subprocess.run(["meson", "compile", "-C", build], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, errors="replace", check=False)
    if done.returncode == 0:
        return []
    return [Outcome("build", "failed", f"exit status {done.returncode}", done.stdout)]


def run_meson(build, args, tests):
    """meson test, its own summary left out; returns its exit status."""
    command = ["meson", "test", "--no-rebuild", "-C", build, *args]
    env = dict(os.environ, PYTHONUNBUFFERED="1")
    heart = Heartbeat(tests)
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, text=True,
                          errors="replace", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as meson:
        heart.start()
        try:
            relay(meson.stdout, heart)
        except KeyboardInterrupt:
            meson.wait()
        finally:
            heart.over.set()
    return meson.returncode


def relay(stream, heart):
    """Passes on a line per test, not the noise around them."""
    noise = re.compile(r"^(ninja: |>>> |Full log written|Summary of Fail"
                       r"|(Ok|Expected Fail|Fail|Unexpected Pass|Skipped|Timeout):)")
    finished = re.compile(r"^\s*\d+/\d+ (.*?)\s+[A-Z]{2,}\s+[\d.]+s\b")
    for line in stream:
        heart.last = time.monotonic()
        match = finished.match(line)
        if match:
            heart.done.add(short_name(match.group(1)))
        if line.strip() and not noise.match(line):
            print(line.rstrip(), flush=True)


def report(outcomes):
    skipped = [o for o in outcomes if o.state == "skipped"]
    failed = [o for o in outcomes if o.state == "failed"]
    if skipped:
        print("\nSkipped, and why:")
    by_reason = {}
    for outcome in skipped:
        by_reason.setdefault(outcome.reason or "no reason given", []).append(outcome.name)
    for reason, names in by_reason.items():
        print(f"  {reason}:")
        for name in names:
            print(f"    {name}")
    for outcome in failed:
        print(f"\nFAILED {outcome.name}"
              + (f" ({outcome.reason})" if outcome.reason else ""))
        lines = outcome.log.splitlines()
        if len(lines) > TAIL_LINES:
            print(f"  ... {len(lines) - TAIL_LINES} lines before these")
        for line in lines[-TAIL_LINES:]:
            print(f"  | {line}")
    passed = sum(o.state == "passed" for o in outcomes)
    print(f"\n{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or not passed else 0


def record(path, entries, outcomes):
    """What is worth keeping of a run that is not made every day."""
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    passed = sum(outcome.state == "passed" for outcome in outcomes)
    lines = [f"{time.strftime('%Y-%m-%d')}: {passed} passed, {len(failed)} failed"]
    lines += [f"{short_name(entry['name'])}: {entry['result']}, {entry['duration']:.0f} s"
              for entry in entries]
    lines += [f"FAILED {outcome.name}" for outcome in failed]
    with open(path, "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")


def main():
    record_path, arguments = None, sys.argv[1:]
    if arguments[:1] == ["--record"]:
        record_path, arguments = arguments[1:2], arguments[2:]
    if not arguments or arguments[0].startswith("-"):
        print(__doc__.strip())
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    build, args = arguments[0], arguments[1:]
    path = os.path.join(build, "meson-logs", "testlog.json")
    try:
        os.unlink(path)  # the last run's results are not this one's
    except FileNotFoundError:
        pass
    except OSError as error:
        print(f"run-tests.py: {path} of an earlier run cannot be removed "
              f"({error.strerror}): does {build} belong to another user?",
              file=sys.stderr)
        return 1
    broken = compile_all(build)
    if broken:
        return report(broken)
    tests = selected_tests(build, args)
    started = time.monotonic()
    status = run_meson(build, args, tests)

    taps = {name for name, is_tap in tests if is_tap}
    entries = read_log(path)
    outcomes = []
    for entry in entries:
        outcomes += outcomes_of(entry, short_name(entry["name"]) in taps)
    ran = {short_name(entry["name"]) for entry in entries}
    for name, _ in tests:
        if name not in ran:
            outcomes.append(Outcome(name, "failed", "did not run"))
    if status and not any(o.state == "failed" for o in outcomes):
        outcomes.append(Outcome("meson test", "failed", f"exit status {status}"))
    if not outcomes:
        print(f"run-tests.py: no tests in {build}", file=sys.stderr)
    print(f"\n{len(entries)} test programs in {time.monotonic() - started:.0f} s")
    if record_path:
        record(record_path[0], entries, outcomes)
    return report(outcomes)


if __name__ == "__main__":
    sys.exit(main())
