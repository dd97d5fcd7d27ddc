#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Shows what FlexSC-Threads does for unmodified servers: `make demo` runs it.

    scripts/demo.py --build build [--rounds N] [--plot FILE.svg]

Starts the distribution's Apache and MariaDB in a scratch folder, as they are
and under `flexsc run`, and drives them with wrk and sysbench in turns: round
after round, so that whatever else the machine does hits both. Ratios are taken
within a round. The servers run on the first processor, the clients on the
second. The figure to trust on a shared machine is processor time per request.
"""

import argparse
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from servers import mariadb, measure, process

LOCK = "/tmp/flexsc-measure.lock"
SECONDS = 2
COLUMNS = ("cpu", "rate", "p50", "p99", "memory")
HEAD = ("server/connections", "on", "CPU us/req", "requests/s", "p50 ms", "p99 ms", "MB")


def say(text=""):
    print(text, flush=True)


class Stage:
    """A case, its servers running, and what they gave."""

    def __init__(self, case, runners, scratch):
        self.case, self.samples = case, []
        self.turns = measure.Turns(case, runners, scratch)

    def play(self, number):
        """One round; 0 warms up and does not count."""
        samples = self.turns.turn(SECONDS if number else 1)
        if number:
            self.samples.append(samples)
        cells = [f"{sample.rate:>9,.0f} ({sample.cpu:5.1f})" for sample in samples.values()]
        say(f"  {self.case.label():28}" + "".join(f"{cell:>20}" for cell in cells))

    def middle(self, runner, name):
        values = [getattr(samples[runner], name) for samples in self.samples]
        values = [value for value in values if value is not None]
        return statistics.median(values) if values else float("nan")

    def spread(self, runner, name):
        values = [getattr(samples[runner], name) for samples in self.samples]
        return min(values), max(values)

    def ratio(self, name):
        """FlexSC-Threads by NPTL, within rounds."""
        return statistics.median(
            getattr(samples[process.THREADS], name) /
            max(getattr(samples[process.NATIVE], name), 1e-9) for samples in self.samples)

    def errors(self):
        return [f"{self.case.label()}, {runner}: {error}" for samples in self.samples
                for runner, sample in samples.items() for error in sample.errors]


def check_same(stages):
    """Both give the same bytes before anything is measured."""
    for stage in stages:
        answers = set()
        for server in stage.turns.servers.values():
            if isinstance(stage.case, measure.ApacheCase):
                with urllib.request.urlopen(server.url(measure.PAGE), timeout=20) as page:
                    answers.add(hashlib.sha256(page.read()).hexdigest())
            else:
                answers.add(server.sql("checksum table sbtest.sbtest1"))
        if len(answers) != 1:
            raise process.Failure(f"{stage.case.label()}: the answers differ: {answers}")


def table(stages):
    rows = [HEAD]
    for stage in stages:
        for runner in (process.NATIVE, process.THREADS):
            cells = [stage.middle(runner, name) for name in COLUMNS]
            rows.append((stage.case.label() if runner == process.NATIVE else "", runner,
                         f"{cells[0]:.1f}", f"{cells[1]:,.0f}", f"{cells[2]:.2f}",
                         f"{cells[3]:.2f}", f"{cells[4]:.0f}"))
        rows.append(("", "ratio", *(f"{stage.ratio(name):.2f}" for name in COLUMNS)))
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    for number, row in enumerate(rows):
        say("  ".join([row[0].ljust(widths[0]), row[1].ljust(widths[1])] +
                      [cell.rjust(width) for cell, width in zip(row[2:], widths[2:])]).rstrip())
        if number % 3 == 0 and number + 1 < len(rows):
            say("-" * (sum(widths) + 2 * len(widths) - 2))


def plot_rows(stages, rounds):
    """The lines of `flexsc bench --json`, which plot.py draws."""
    yield {"kernel": os.uname().release, "cpus": os.cpu_count(), "cpu": cpu_name()}
    for name in ("cpu", "rate", "p99", "memory"):
        metric, unit = measure.Sample.METRICS[name]
        for stage in stages:
            low, high = stage.spread(process.THREADS, name)
            rival_low, rival_high = stage.spread(process.NATIVE, name)
            yield {"bench": "demo", "case": stage.case.label(), "engine": process.THREADS,
                   "metric": metric, "unit": unit, "runs": rounds,
                   "value": stage.middle(process.THREADS, name), "low": low, "high": high,
                   "rival": process.NATIVE, "rival_low": rival_low, "rival_high": rival_high,
                   "rival_value": stage.middle(process.NATIVE, name)}


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return ""


def draw(stages, rounds, target):
    plot = pathlib.Path(__file__).resolve().parent.parent / "bench" / "plot.py"
    lines = "\n".join(json.dumps(row) for row in plot_rows(stages, rounds))
    done = subprocess.run(["/usr/bin/python3", str(plot), target], input=lines, text=True,
                          capture_output=True, check=False)
    if done.returncode == 0:
        say(f"A picture of it: {target}")
    else:
        say(f"No picture: {(done.stderr.strip() or 'plot.py failed').splitlines()[-1]}")


def make_cases(scratch):
    say("Making a database for MariaDB")
    data = mariadb.with_tables(scratch / "tables", measure.ROWS)
    return [measure.ApacheCase("Apache", 64), measure.ApacheCase("Apache", 256),
            measure.MariaDBCase("point_select", 64, data),
            measure.MariaDBCase("point_select", 256, data)]


def perform(stages, rounds):
    check_same(stages)
    say("The answers are the same. Measuring for about "
        f"{(rounds * SECONDS + 1) * len(stages) * 2 * 1.2:.0f} s;\n"
        "requests/s (CPU us of each), first on NPTL, then under flexsc run:")
    for number in range(rounds + 1):
        say(f"round {number} of {rounds}" if number else "warming up")
        for stage in stages:
            stage.play(number)
    say()
    table(stages)
    say(f"\nMedians of {rounds} rounds in turns; ratio: FlexSC-Threads by NPTL. Apache: a file")
    say(f"of {measure.PAGE_SIZE} bytes, keep-alive. MariaDB: sysbench, Unix socket. CPU: user and")
    say("system time of all of the server's processes. MB: resident, without mapped files.")


def run(flexsc, rounds, target, scratch):
    runners = [process.native(), process.threads(flexsc)]
    for tool in (("apache2", "httpd"), ("mariadbd", "mysqld"), ("wrk",), ("sysbench",)):
        process.find(*tool)
    stages = []
    try:
        for case in make_cases(scratch):
            say(f"Starting {case.label()}, as it is and under flexsc run")
            stages.append(Stage(case, runners, scratch))
        perform(stages, rounds)
        draw(stages, rounds, target)
        errors = [error for stage in stages for error in stage.errors()]
        if errors:
            raise process.Failure("the clients saw errors:\n  " + "\n  ".join(errors))
    finally:
        for stage in stages:
            stage.turns.stop()


def wait_for_lock(lock):
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        say("Waiting for another measurement on this machine to end")
        fcntl.flock(lock, fcntl.LOCK_EX)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="build directory")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--plot", help="file for the picture; default: BUILD/demo.svg")
    args = parser.parse_args()
    flexsc = pathlib.Path(args.build).resolve() / "cli" / "flexsc"
    target = args.plot or os.path.join(args.build, "demo.svg")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    started = time.monotonic()
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="flexsc-demo-"))
    scratch.chmod(0o755)
    with open(LOCK, "w", encoding="utf-8") as lock:
        wait_for_lock(lock)
        try:
            run(str(flexsc), max(args.rounds, 1), target, scratch)
        except process.Absent as absent:
            print(f"demo.py: {absent}: scripts/setup.sh demo", file=sys.stderr)
            return 1
        except (process.Failure, subprocess.SubprocessError, OSError) as failure:
            print(f"demo.py: {failure}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    say(f"Took {time.monotonic() - started:.0f} s on Linux {os.uname().release}, "
        f"{os.cpu_count()} processors.")
    say(f"\nNext: {flexsc} run -- PROGRAM   your own threaded server\n"
        f"      {flexsc} bench --list     more measurements\n"
        "      make demo-files               libflexsc: a file server beside plain epoll")
    return 0


if __name__ == "__main__":
    sys.exit(main())
