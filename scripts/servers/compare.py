#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs somebody's server natively and under flexsc run, under their own load.

    compare.py --flexsc PROGRAM --load COMMAND [--ready PORT | --ready-cmd COMMAND]
               [--runs N] [--engine E] [--cores N] -- SERVER ARGUMENT...

`flexsc compare` runs it and prints its JSON lines as a table.
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

if __package__:
    from . import formats, process
else:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    from servers import formats, process

SURE = 0.9  # that the median lies between the bounds that are given
SHOWN_PERCENTILES = (50, 90, 95, 99, 99.9)
LOOK_S = 0.2


def say(**fields):
    print(json.dumps(fields), flush=True)


def sure_bounds(values):
    """(low, high) that hold the median with at least SURE; None: too few values."""
    values, nr = sorted(values), len(values)
    cut, outside = 0, 0.0
    # So many may lie beyond each bound: the binomial distribution of a fair coin.
    while cut < nr / 2:
        outside += math.comb(nr, cut) / 2 ** nr
        if 1 - 2 * outside < SURE:
            break
        cut += 1
    return (values[cut - 1], values[-cut]) if cut else None


def plural(unit):
    return unit[:-1] + "ies" if unit.endswith("y") else unit + "s"


def percent(ratio):
    """How far from 1, in words."""
    by = abs(ratio - 1) * 100
    return f"{by:.0f} %" if by >= 10 else f"{by:.1f} %"


def verdict(what, pairs, words):
    """A sentence: what FlexSC's figure is, against the native one of its turn."""
    ratios = [ours / native for native, ours in pairs if native > 0 and ours > 0]
    if not ratios:
        return None
    middle, bounds = statistics.median(ratios), sure_bounds(ratios)
    if not bounds:
        return f"{what}: {middle:.2f} of the native one, turn by turn; five turns are " \
               "needed to claim a difference"
    low, high = bounds
    if low <= 1 <= high:
        return f"{what}: no difference that this noise allows to claim ({middle:.2f} of " \
               f"the native one, turn by turn: {low:.2f} to {high:.2f})"
    return f"{what}: {percent(middle)} {words[middle > 1]} under FlexSC-Threads " \
           f"(turn by turn {low:.2f} to {high:.2f} of the native one)"


class Watch(threading.Thread):
    """The most memory that a server has had meanwhile."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.most, self.over = server, server.memory_mb(), threading.Event()

    def run(self):
        while not self.over.wait(LOOK_S):
            self.most = max(self.most, self.server.memory_mb())

    def end(self):
        self.over.set()
        self.join()
        return max(self.most, self.server.memory_mb())


def ready(server, options):
    """Waits until the server serves."""
    if options.ready_cmd:
        def works():
            return subprocess.run(options.ready_cmd, shell=True, check=False,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL).returncode == 0
        server.wait_ready(works, options.wait)
    elif options.ready:
        server.wait_ready(lambda: process.accepts(options.ready), options.wait)
    else:
        time.sleep(1)
        server.wait_ready(lambda: True)


def drive(options):
    """The load: (what it printed, how long it ran)."""
    begin = time.monotonic()
    done = subprocess.run(options.load, shell=True, check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", preexec_fn=process.end_with_parent)
    if done.returncode:
        raise process.Failure(f"the load ended with status {done.returncode}: "
                              f"{done.stdout.strip()[-400:]}")
    return done.stdout, time.monotonic() - begin


def measure(runner, options, scratch):
    """{(metric, unit): value} of one start of the server, and the load's errors."""
    with process.Server(runner, options.server, scratch / f"{runner.name}.log") as server:
        ready(server, options)
        cpu, switches = server.cpu_seconds(), server.switches()
        watch = Watch(server)
        watch.start()
        text, seconds = drive(options)
        memory = watch.end()
        if not server.alive():
            raise process.Failure(f"the server ended under load ({runner.name}):\n"
                                  f"{server.last_words()}")
        cpu, switches = server.cpu_seconds() - cpu, server.switches() - switches
        server.stop(seconds=options.wait)
    found = formats.read(text)
    unit, count = (found.unit, found.count) if found else ("run", 1)
    scale, cpu_unit = (1e6, "us") if found else (1, "s")
    values = {("CPU", f"{cpu_unit}/{unit}"): cpu * scale / count,
              ("throughput", f"{plural(unit)}/s"): found.rate if found else 1 / seconds,
              ("memory", "MB"): memory,
              ("context switches", f"per {unit}"): switches / count}
    for which in SHOWN_PERCENTILES if found else ():
        if which in found.latencies:
            values[(f"p{which:g} latency", "ms")] = found.latencies[which]
    return values, found.errors if found else []


WORDS = {"CPU": ("processor time", ("less", "more")),
         "throughput": ("throughput", ("less", "more")),
         "p99 latency": ("p99 latency", ("shorter", "longer"))}


def compare(options, runners, scratch):
    label, pairs, complaints = pathlib.Path(options.server[0]).name, {}, set()
    for turn in range(options.runs):
        order = runners if turn % 2 == 0 else runners[::-1]
        seen = {}
        for runner in order:
            say(now=f"turn {turn + 1} of {options.runs}, {runner.name}")
            seen[runner.name], errors = measure(runner, options, scratch)
            complaints |= {f"{runner.name}: {error}" for error in errors}
        for runner in runners:
            for (metric, unit), value in seen[runner.name].items():
                say(case=label, runner=runner.name, metric=metric, unit=unit, value=value)
        for (metric, _), value in seen[process.NATIVE].items():
            ours = {name: v for (name, _), v in seen[process.THREADS].items()}.get(metric)
            if ours is not None:
                pairs.setdefault(metric, []).append((value, ours))
    say(done=label)
    for complaint in sorted(complaints):
        say(note=complaint)
    for metric, (what, words) in WORDS.items():
        sentence = verdict(what, pairs.get(metric, []), words)
        if sentence:
            say(verdict=sentence)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flexsc", required=True)
    parser.add_argument("--load", required=True)
    parser.add_argument("--ready", type=int)
    parser.add_argument("--ready-cmd")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--wait", type=float, default=60)
    parser.add_argument("--engine")
    parser.add_argument("--cores")
    parser.add_argument("server", nargs="+")
    return parser.parse_args()


def main():
    options = parse()
    process.end_with_parent()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.ready and process.accepts(options.ready):
        say(note=f"something listens on port {options.ready} already: it would be measured "
                 "in place of the server")
        return 1
    more = [f"--engine={options.engine}"] if options.engine else []
    more += [f"--cores={options.cores}"] if options.cores else []
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="flexsc-compare-"))
    try:
        # Not --quiet: if it falls back the reason is in the server's output.
        ours = process.Runner(process.THREADS, [options.flexsc, "run", *more, "--"])
        compare(options, [process.native(), ours], scratch)
        return 0
    except (process.Failure, OSError) as failure:
        say(note=str(failure))
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
