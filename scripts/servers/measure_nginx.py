#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures nginx on epoll and on libflexsc (ports/nginx), in turns.

    measure_nginx.py --flexsc PROGRAM [--runs N] [--engine E] [--quick]

`flexsc bench servers --server nginx` runs it and prints its JSON lines as a
table. One worker on the first processor, its client on the second; with engine
uthread (or --engine) system calls are on the client's processor, too.
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
    from . import load, measure, nginx, process
else:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    from servers import load, measure, nginx, process

SIZES = [64 << shift for shift in range(8)]  # the paper's: 64 B to 8 KB
COPIED = "sendfile off;"
PICK = """
local names = { %s }
request = function()
    return wrk.format("GET", "/" .. names[math.random(#names)])
end
"""


def thread_seconds(tid):
    """Processor time of one thread, in the resolution of the scheduler."""
    text = pathlib.Path(f"/proc/{tid}/task/{tid}/schedstat").read_text()
    return int(text.split()[0]) / 1e9


class NginxCase(measure.Case):
    """@pick: files of mixed sizes; @close: a new connection for each request."""

    def __init__(self, name, connections, close=False, pick=False, spread=False, http=""):
        super().__init__(name, connections)
        self.close, self.pick, self.spread, self.http = close, pick, spread, http

    def start(self, runner, scratch):
        scratch.chmod(0o755)
        files = {measure.PAGE: random.Random(1).randbytes(measure.PAGE_SIZE)}
        files |= {f"{size}.bin": random.Random(size).randbytes(size) for size in SIZES}
        cpus, main = self.server_cpus, ""
        if self.spread:  # the worker is bound by nginx, so others may go elsewhere
            cpus = self.server_cpus | self.client_cpus
            main = f"worker_cpu_affinity {1 << min(self.server_cpus):b};"
        server = nginx.Nginx(runner, scratch / "nginx", files, cpus=cpus, main=main,
                             http=self.http)
        server.script = scratch / "pick.lua"
        server.script.write_text(PICK % ", ".join(f'"{size}.bin"' for size in SIZES))
        return server

    def drive(self, server, seconds, during, rate=0):
        more = ["-s", str(server.script)] if self.pick else []
        return load.wrk(server.url("" if self.pick else measure.PAGE), self.connections,
                        seconds, self.client_cpus, during, self.close, more)

    def sample(self, server, seconds, rate=0):
        worker = server.workers()[0]
        before = thread_seconds(worker)
        sample = super().sample(server, seconds, rate)
        sample.thread = (thread_seconds(worker) - before) * 1e6 / max(sample.requests, 1)
        return sample


METRICS = {"thread": ("the worker's thread", "us/request"), **measure.Sample.METRICS}
measure.Sample.METRICS = METRICS


def cases_here(quick, engine):
    """(case, engine) in the order of the table."""
    one = engine or "poll"
    if quick:
        return [(NginxCase("nginx, 1 KB", 16, spread=bool(engine)), one)]
    spread = one not in ("poll", "sync")
    found = [(NginxCase("nginx, 1 KB", nr, spread=spread), one) for nr in (64, 256, 512)]
    found += [(NginxCase("nginx, 1 KB, connects", 64, close=True, spread=spread), one),
              (NginxCase("nginx, 64 B-8 KB", 64, pick=True, spread=spread), one),
              # The original's best for small files: header and body in one piece.
              (NginxCase("nginx, 1 KB, copied", 64, spread=spread, http=COPIED), one)]
    if not engine:
        found.append((NginxCase("nginx, 1 KB, kernel core", 64, spread=True), "uthread"))
    return found


def measure_case(case, contender, scratch, runs, quick):
    runners = [nginx.original(), contender]
    measure.say(rival=runners[0].name, contender=runners[1].name)
    try:
        with measure.Turns(case, runners, scratch) as turns:
            if not quick:
                turns.turn(1)  # warms up
            for _ in range(runs):
                measure.say_samples(case.label(), turns.turn(1 if quick else 2), METRICS)
    except (process.Failure, subprocess.SubprocessError, OSError) as failure:
        measure.say(note=f"{case.label()}: {failure}")
        return False
    finally:
        measure.say(done=case.label())
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flexsc", required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--engine")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="flexsc-servers-"))
    scratch.chmod(0o755)
    try:
        process.find("nginx")
        process.find("wrk")
        module = nginx.build(pathlib.Path(args.flexsc).resolve().parents[1])
        good = [measure_case(case, nginx.Engine(engine, module), scratch, args.runs,
                             args.quick)
                for case, engine in cases_here(args.quick, args.engine)]
        return 0 if all(good) else 1
    except process.Failure as failure:
        measure.say(note=f"{failure}: no figures of nginx")
        return 0
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
