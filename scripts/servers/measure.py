#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures servers on NPTL and under FlexSC-Threads, in turns.

    measure.py --flexsc PROGRAM [--runs N] [--quick]

`flexsc bench servers` runs it and prints its JSON lines as a table: one line
for each figure of each run, and one when a case is over. The server has the
first processor, its client the second.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

if __package__:
    from . import apache, load, mariadb, process
else:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    from servers import apache, load, mariadb, process

PAGE = "page.html"
PAGE_SIZE = 1024
ROWS = 20000
EQUAL_LOAD = 0.7  # of what NPTL can do
THREADS_TO_SPARE = 8


class Sample:
    """What one run gave; CPU time in us a request, latencies in ms."""

    METRICS = {"cpu": ("CPU", "us/request"), "rate": ("throughput", "requests/s"),
               "p50": ("p50 latency", "ms"), "p99": ("p99 latency", "ms"),
               "memory": ("memory", "MB"), "switches": ("context switches", "per request")}

    def __init__(self, found, cpu, memory, switches):
        self.rate, self.p50, self.p99 = found.rate, found.p50, found.p99
        self.cpu, self.memory, self.switches = cpu, memory, switches
        self.errors, self.requests = found.errors, found.requests


def processors():
    """Of the server and of its client."""
    allowed = sorted(os.sched_getaffinity(0))
    return {allowed[0]}, {allowed[min(1, len(allowed) - 1)]}


class Case:
    """A server and what it is asked: start() one of them, drive() it."""

    def __init__(self, name, connections):
        self.name, self.connections = name, connections
        self.server_cpus, self.client_cpus = processors()

    def label(self):
        return f"{self.name}/{self.connections}"

    def start(self, runner, scratch):
        raise NotImplementedError

    def drive(self, server, seconds, during, rate=0):
        """Load; @rate: requests a second, 0: as many as are answered."""
        raise NotImplementedError

    def sample(self, server, seconds, rate=0):
        memory = []
        cpu, switches = server.cpu_seconds(), server.switches()
        found = self.drive(server, seconds, lambda: memory.append(server.memory_mb()), rate)
        if not server.alive():
            raise process.Failure(f"{self.label()}: {server.runner.name} died:\n"
                                  f"{server.last_words()}")
        nr = max(found.requests, 1)
        return Sample(found, (server.cpu_seconds() - cpu) * 1e6 / nr,
                      max(memory, default=server.memory_mb()),
                      (server.switches() - switches) / nr)


class ApacheCase(Case):
    """Keep-alive, a file of 1 KB; a thread for each connection."""

    flexsc = None  # has the client that keeps a rate

    def start(self, runner, scratch):
        scratch.chmod(0o755)
        return apache.Apache(runner, scratch / "apache", {PAGE: b"x" * PAGE_SIZE},
                             self.connections + THREADS_TO_SPARE, cpus=self.server_cpus)

    def drive(self, server, seconds, during, rate=0):
        if not rate:
            return load.wrk(server.url(PAGE), self.connections, seconds, self.client_cpus,
                            during)
        return load.paced(self.flexsc, server.port, "/" + PAGE, self.connections, rate,
                          seconds, self.client_cpus, during)


class MariaDBCase(Case):
    """@script: of sysbench; @data: a folder with its tables."""

    PER_TRANSACTION = {"point_select": 1, "read_only": 16}

    def __init__(self, script, connections, data):
        super().__init__(f"MariaDB {script}", connections)
        self.script, self.data = script, data

    def start(self, runner, scratch):
        return mariadb.MariaDB(runner, scratch / "run",
                               mariadb.copy(self.data, scratch / "data"),
                               self.connections, self.server_cpus)

    def drive(self, server, seconds, during, rate=0):
        transactions = round(rate / self.PER_TRANSACTION[self.script])
        return load.sysbench(server.socket, self.script, self.connections, seconds, ROWS,
                             self.client_cpus, during, transactions)


class Turns:
    """One case on each runner, its servers all running: A B A B ..."""

    def __init__(self, case, runners, scratch):
        self.case, self.folder = case, pathlib.Path(tempfile.mkdtemp(dir=scratch))
        self.folder.chmod(0o755)
        self.servers, self.nr = {}, 0
        try:
            for runner in runners:
                folder = self.folder / runner.name
                folder.mkdir()
                self.servers[runner.name] = case.start(runner, folder)
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for server in self.servers.values():
            server.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def turn(self, seconds, rate=0):
        """{name of the runner: Sample}; who begins changes from turn to turn."""
        order = list(self.servers)
        if self.nr % 2:
            order.reverse()
        self.nr += 1
        samples = {name: self.case.sample(self.servers[name], seconds, rate)
                   for name in order}
        return {name: samples[name] for name in self.servers}


def say(**fields):
    print(json.dumps(fields), flush=True)


def say_samples(label, samples, names):
    for runner, sample in samples.items():
        for name in names:
            metric, unit = Sample.METRICS[name]
            value = getattr(sample, name)
            if value is not None:
                say(case=label, runner=runner, metric=metric, unit=unit, value=value)
        for error in sample.errors:
            say(note=f"{label}, {runner}: {error}")


def measure_case(case, runners, scratch, runs, quick):
    seconds = 1 if quick else 2
    equal = case.connections <= 256 and not (quick and case.name != "Apache")
    try:
        with Turns(case, runners, scratch) as turns:
            if not quick:
                turns.turn(1)  # warms up
            peaks = []
            for _ in range(runs):
                samples = turns.turn(seconds)
                peaks.append(samples[process.NATIVE].rate)
                say_samples(case.label(), samples, Sample.METRICS)
            say(done=case.label())
            rate = EQUAL_LOAD * sorted(peaks)[len(peaks) // 2]
            label = f"{case.name}, 70 % load/{case.connections}"
            for _ in range(runs if equal else 0):
                say_samples(label, turns.turn(seconds, rate), ["cpu", "rate", "p50", "p99"])
            say(done=label)
    except (process.Failure, subprocess.SubprocessError, OSError) as failure:
        say(note=f"{case.label()}: {failure}")
        say(done=case.label())
        return False
    return True


def cases_here(scratch, quick):
    found = []
    try:
        process.find("apache2", "httpd")
        process.find("wrk")
        found += [ApacheCase("Apache", nr) for nr in ([16] if quick else [64, 256, 1024])]
    except process.Absent as absent:
        say(note=f"{absent}: no figures of Apache")
    try:
        process.find("mariadbd", "mysqld")
        process.find("sysbench")
        data = mariadb.with_tables(scratch / "tables", ROWS)
        found += [MariaDBCase("point_select", nr, data) for nr in ([16] if quick else [64, 256])]
        found += [MariaDBCase("read_only", nr, data) for nr in ([] if quick else [64, 256])]
    except process.Absent as absent:
        say(note=f"{absent}: no figures of MariaDB")
    return found


def runners_here(flexsc):
    found = [process.native()]
    try:
        found.append(process.threads(flexsc))
    except process.Absent as absent:
        say(note=str(absent))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flexsc", required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    ApacheCase.flexsc = args.flexsc
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="flexsc-servers-"))
    scratch.chmod(0o755)
    try:
        runners = runners_here(args.flexsc)
        good = [measure_case(case, runners, scratch, args.runs, args.quick)
                for case in cases_here(scratch, args.quick)]
        return 0 if all(good) else 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
