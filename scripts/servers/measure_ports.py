#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures a server as it is and on libflexsc (ports/), in turns.

    measure_ports.py --server nginx|memcached --flexsc PROGRAM [--runs N]
                     [--engine E] [--quick | --count] [--only RUNNER]

`flexsc bench servers --server SERVER` runs it and prints its JSON lines as a
table. One worker on the first processor, its client on the second; with engine
uthread (or --engine) system calls are on the client's processor, too. --count:
times are instructions (tools/vm-run --icount), so only these, of few cases;
with --only epoll, libevent or flexsc-E for its --profile.
"""

import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile

if __package__:
    from . import load, measure, memcached, nginx, process
else:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    from servers import load, measure, memcached, nginx, process

SIZES = [64 << shift for shift in range(8)]  # the paper's: 64 B to 8 KB
COPIED = "sendfile off;"
PICK = """
local names = { %s }
request = function()
    return wrk.format("GET", "/" .. names[math.random(#names)])
end
"""
KEYS, VALUE_SIZE, PER_SET = 10000, 100, 10  # one of ten messages is a set
COUNT_SECONDS = 0.2


def thread_seconds(tid):
    """Processor time of one thread, in the resolution of the scheduler."""
    text = pathlib.Path(f"/proc/{tid}/schedstat").read_text()
    return int(text.split()[0]) / 1e9


class PortCase(measure.Case):
    """@spread: calls may be made on the client's processor, too."""

    flexsc = None  # has the client that keeps a rate

    def __init__(self, name, connections, spread=False):
        super().__init__(name, connections)
        self.spread = spread
        self.cpus = self.server_cpus | self.client_cpus if spread else self.server_cpus
        # A client that keeps a rate spins; beside a kernel core it is in its way.
        self.paced = not spread

    def worker(self, server):
        """The thread that serves, as a folder of /proc."""
        raise NotImplementedError

    def sample(self, server, seconds, rate=0):
        worker = self.worker(server)
        before = thread_seconds(worker)
        sample = super().sample(server, seconds, rate)
        sample.thread = (thread_seconds(worker) - before) * 1e6 / max(sample.requests, 1)
        sample.instructions = sample.cpu * 1000
        return sample


class NginxCase(PortCase):
    """@pick: files of mixed sizes; @close: a new connection for each request."""

    def __init__(self, name, connections, close=False, pick=False, spread=False, http="",
                 wrk=True):
        super().__init__(name, connections, spread)
        self.close, self.pick, self.http, self.wrk = close, pick, http, wrk
        self.paced &= not (close or pick)

    def start(self, runner, scratch):
        scratch.chmod(0o755)
        files = {measure.PAGE: random.Random(1).randbytes(measure.PAGE_SIZE)}
        files |= {f"{size}.bin": random.Random(size).randbytes(size) for size in SIZES}
        # The worker is bound by nginx, so others may go elsewhere.
        main = f"worker_cpu_affinity {1 << min(self.server_cpus):b};" if self.spread else ""
        server = nginx.Nginx(runner, scratch / "nginx", files, cpus=self.cpus, main=main,
                             http=self.http)
        server.script = scratch / "pick.lua"
        server.script.write_text(PICK % ", ".join(f'"{size}.bin"' for size in SIZES))
        return server

    def worker(self, server):
        pid = server.workers()[0]
        return f"{pid}/task/{pid}"

    def drive(self, server, seconds, during, rate=0):
        if rate or not self.wrk:
            return load.paced(self.flexsc, server.port, "/" + measure.PAGE, self.connections,
                              rate, seconds, self.client_cpus, during)
        more = ["-s", str(server.script)] if self.pick else []
        return load.wrk(server.url("" if self.pick else measure.PAGE), self.connections,
                        seconds, self.client_cpus, during, self.close, more)


class MemcachedCase(PortCase):
    """Values of one size; nine gets and a set, in turns."""

    def start(self, runner, scratch):
        server = memcached.Memcached(runner, scratch / "memcached", 1, self.cpus)
        names = [f"key{number:07}" for number in random.Random(1).sample(range(KEYS), KEYS)]
        body = random.Random(2).randbytes(VALUE_SIZE).hex()[:VALUE_SIZE]
        server.keep(names, body.encode())
        server.messages = scratch / "messages"
        texts = [(f"get {name}\r\n", 0) if number % PER_SET else
                 (f"set {name} 0 0 {VALUE_SIZE}\r\n{body}\r\n", 1)
                 for number, name in enumerate(names)]
        server.messages.write_bytes(
            b"".join(f"{kind} {len(text)}\n{text}".encode() for text, kind in texts))
        os.sched_setaffinity(server.worker_tid(), self.server_cpus)
        return server

    def worker(self, server):
        return f"{server.pid}/task/{server.worker_tid()}"

    def drive(self, server, seconds, during, rate=0):
        return load.paced(self.flexsc, server.port, f"@{server.messages}", self.connections,
                          rate, seconds, self.client_cpus, during)


METRICS = {"thread": ("the worker's thread", "us/request"), **measure.Sample.METRICS,
           "instructions": ("instructions", "per request")}
measure.Sample.METRICS = METRICS
EVERY = [name for name in METRICS if name != "instructions"]


def cases_of_nginx(quick, count, engine):
    """(case, engine) in the order of the table."""
    one, spread = engine or "poll", engine not in (None, "poll", "sync")
    if quick or count:
        return [(NginxCase("nginx, 1 KB", 16 if quick else 64, spread=bool(engine),
                           wrk=not count), one)]
    found = [(NginxCase("nginx, 1 KB", nr, spread=spread), one) for nr in (64, 256, 512)]
    found += [(NginxCase("nginx, 1 KB, connects", 64, close=True, spread=spread), one),
              (NginxCase("nginx, 64 B-8 KB", 64, pick=True, spread=spread), one),
              # The original's best for small files: header and body in one piece.
              (NginxCase("nginx, 1 KB, copied", 64, spread=spread, http=COPIED), one)]
    if not engine:
        found.append((NginxCase("nginx, 1 KB, kernel core", 64, spread=True), "uthread"))
    return found


def cases_of_memcached(quick, count, engine):
    one, spread = engine or "poll", engine not in (None, "poll", "sync")
    if quick or count:
        return [(MemcachedCase("memcached", 16 if quick else 64, spread=bool(engine)), one)]
    found = [(MemcachedCase("memcached", nr, spread=spread), one) for nr in (64, 256, 768)]
    if not engine:
        found.append((MemcachedCase("memcached, kernel core", 64, spread=True), "uthread"))
    return found


SERVERS = {"nginx": (nginx, cases_of_nginx), "memcached": (memcached, cases_of_memcached)}


def measure_case(case, runners, args, scratch):
    original, contender = runners
    measure.say(rival=original.name, contender=contender.name)
    names = ["instructions"] if args.count else EVERY
    seconds = COUNT_SECONDS if args.count else 1 if args.quick else 2
    runners = [runner for runner in runners if args.only in (None, runner.name)]
    peaks, label = [], case.label()
    try:
        with measure.Turns(case, runners, scratch) as turns:
            if not (args.quick or args.count):
                turns.turn(1)  # warms up
            for _ in range(args.runs):
                samples = turns.turn(seconds)
                peaks += [samples[original.name].rate] if original in runners else []
                measure.say_samples(label, samples, names)
            # As measure.py does: who is asked as much must not answer later.
            if peaks and case.paced and not (args.quick or args.count):
                measure.say(done=label)
                label = f"{case.name}, 70 % load/{case.connections}"
                rate = measure.EQUAL_LOAD * sorted(peaks)[len(peaks) // 2]
                for _ in range(args.runs):
                    measure.say_samples(label, turns.turn(seconds, rate),
                                        ["cpu", "rate", "p50", "p99"])
    except (process.Failure, subprocess.SubprocessError, OSError) as failure:
        measure.say(note=f"{label}: {failure}")
        return False
    finally:
        measure.say(done=label)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", required=True, choices=SERVERS)
    parser.add_argument("--flexsc", required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--engine")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--only")
    args = parser.parse_args()
    PortCase.flexsc = args.flexsc
    if args.count:
        # On one processor client and server would interrupt each other for each message.
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="flexsc-servers-"))
    scratch.chmod(0o755)
    server, cases = SERVERS[args.server]
    try:
        built = server.build(pathlib.Path(args.flexsc).resolve().parents[1])
        for tool in server.TOOLS:
            process.find(tool)
        good = [measure_case(case, (server.original(built), server.Engine(engine, built)),
                             args, scratch)
                for case, engine in cases(args.quick, args.count, args.engine)]
        return 0 if all(good) else 1
    except process.Failure as failure:
        measure.say(note=f"{failure}: no figures of {args.server}")
        return 0
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
