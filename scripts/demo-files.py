#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Shows what libflexsc does on this machine: `make demo-files` runs it.

    scripts/demo-files.py --build build [--seconds N]

Serves the same files with examples/fileserver (FlexSC, one run for each engine
that makes sense here) and examples/fileserver-epoll (plain epoll), in turns:
round after round, so that whatever else the machine does hits both. Ratios are
taken within a round. The servers run on the first processor, the client (wrk)
on the second. The figure to trust on a shared machine is processor time per
request.
"""

import argparse
import fcntl
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

LOCK = "/tmp/flexsc-measure.lock"
ROUNDS = 5
CONNECTIONS = (64, 256)
FILES = {"page.html": 1024, "photo.jpg": 100_003, "video.bin": 5_000_000,
         "empty.txt": 0, "a name with blanks.txt": 17}
MEASURED = "page.html"


class Failure(Exception):
    """What ends the demonstration, as a sentence."""


class Server:
    """One server process, and what was measured of it."""

    def __init__(self, name, command, cpus):
        self.name, self.cpus = name, cpus
        self.runs = {connections: [] for connections in CONNECTIONS}
        self.complaints = []
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        line = self.process.stdout.readline()
        found = re.search(r"on port (\d+)(?: with engine (\w+))?", line)
        if not found:
            self.stop()
            raise Failure(f"{command[0]} does not start")
        self.port, self.engine = int(found.group(1)), found.group(2)

    def url(self, name):
        return f"http://127.0.0.1:{self.port}/{name.replace(' ', '%20')}"

    def cpu_seconds(self):
        """User and system time of all its threads so far."""
        try:
            tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
            return sum(int((task / "schedstat").read_text().split()[0])
                       for task in tasks.iterdir()) / 1e9
        except (OSError, ValueError, IndexError):
            fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
            user, system = fields.rsplit(")", 1)[1].split()[11:13]
            return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()


def say(text):
    print(text, flush=True)


def make_files(folder):
    for name, size in FILES.items():
        (folder / name).write_bytes(os.urandom(size))


def fetch(url, target):
    """Status code of what curl says, the body in the file target."""
    done = subprocess.run(["curl", "--silent", "--path-as-is", "--max-time", "20",
                           "--output", target, "--write-out", "%{http_code}", url],
                          capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else f"curl error {done.returncode}"


def check_contents(server, folder, scratch):
    """Every file must come back as it is, and nothing else must."""
    got = scratch / "got"
    for name in FILES:
        got.unlink(missing_ok=True)
        status = fetch(server.url(name), got)
        body = got.read_bytes() if got.exists() else b""
        if status != "200" or body != (folder / name).read_bytes():
            raise Failure(f"{server.name}: {name} comes back different "
                          f"(status {status}, {len(body)} bytes)")
    for name, wanted in (("absent.html", "404"), ("%2e%2e/passwd", "400")):
        status = fetch(server.url(name), got)
        if status != wanted:
            raise Failure(f"{server.name}: {name} gives {status}, not {wanted}")


def to_ms(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s|m|h)", text).groups()
    return float(number) * {"us": 0.001, "ms": 1, "s": 1000, "m": 60000, "h": 3600000}[unit]


def measure(server, connections, seconds, client_cpus):
    """One run of wrk: (requests/s, CPU us per request, p50 ms, p99 ms)."""
    before = server.cpu_seconds()
    wrk = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s",
                          "--latency", server.url(MEASURED)],
                         capture_output=True, text=True, check=False,
                         timeout=seconds + 30,
                         preexec_fn=lambda: os.sched_setaffinity(0, client_cpus))
    used = server.cpu_seconds() - before
    text = wrk.stdout
    total = re.search(r"(\d+) requests in", text)
    rate = re.search(r"Requests/sec:\s*([\d.]+)", text)
    p50 = re.search(r"^\s*50%\s+(\S+)", text, re.MULTILINE)
    p99 = re.search(r"^\s*99%\s+(\S+)", text, re.MULTILINE)
    if not (total and rate and p50 and p99) or not int(total.group(1)):
        raise Failure(f"{server.name}: wrk says {text.strip() or wrk.stderr.strip()}")
    for bad in re.findall(r"(?:Non-2xx|Socket errors).*", text):
        server.complaints.append(f"{connections} connections: {bad}")
    return (float(rate.group(1)), used * 1e6 / int(total.group(1)),
            to_ms(p50.group(1)), to_ms(p99.group(1)))


def medians(server, rival, connections):
    """Of all rounds: the four figures, and speed and CPU relative to the rival."""
    runs, base = server.runs[connections], rival.runs[connections]
    ratios = [(run[0] / other[0], run[1] / other[1]) for run, other in zip(runs, base)]
    return [statistics.median(column) for column in (*zip(*runs), *zip(*ratios))]


def print_table(servers):
    head = ("server", "conns", "requests/s", "CPU us/req", "p50 ms", "p99 ms",
            "speed", "CPU")
    rows = [head]
    for connections in CONNECTIONS:
        for server in servers:
            rate, *others = medians(server, servers[-1], connections)
            rows.append((server.name, str(connections), f"{rate:,.0f}",
                         *(f"{value:.2f}" for value in others)))
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    say("")
    for number, row in enumerate(rows):
        say("  ".join([row[0].ljust(widths[0])] +
                      [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]))
        if number % len(servers) == 0 and number + 1 < len(rows):
            say("-" * (sum(widths) + 2 * len(widths) - 2))
    say("")
    say(f"Medians of {ROUNDS} rounds in turns; a file of {FILES[MEASURED]} bytes, "
        "HTTP keep-alive.")
    say("The last two columns are relative to plain epoll: speed in requests/s, more is")
    say("better; CPU time per request of the whole server process, less is better.")
    if any(server.engine == "uthread" for server in servers):
        say("Engine uthread makes its calls on the second processor, which wrk needs too:")
        say("its CPU is the sum of both.")


def find_program(build, name):
    path = pathlib.Path(build).resolve() / "examples" / name
    if not path.exists():
        raise Failure(f"{path} is missing: build first (make build)")
    return str(path)


def start_servers(build, folder, cpus):
    """FlexSC with each engine that is the one in use here; epoll comes last."""
    flexsc, rival = (find_program(build, name)
                     for name in ("fileserver", "fileserver-epoll"))
    first, both = {cpus[0]}, set(cpus[:2])
    servers = []
    try:
        servers.append(Server("FlexSC", [flexsc, "-p", "0", folder], first))
        servers[0].name = f"FlexSC ({servers[0].engine})"
        if len(cpus) > 1 and servers[0].engine != "uthread":
            server = Server("FlexSC (uthread)",
                            [flexsc, "-p", "0", "-e", "uthread", folder], both)
            if server.engine == "uthread":
                servers.append(server)
            else:
                server.stop()
        servers.append(Server("plain epoll", [rival, "-p", "0", folder], first))
    except BaseException:
        for server in servers:
            server.stop()
        raise
    return servers


def play_round(number, connections, servers, seconds, client):
    """Each server once; round 0 warms up and does not count."""
    title = f"round {number} of {ROUNDS}" if number else "warming up"
    cells = []
    for server in servers:
        result = measure(server, connections, seconds, client)
        if number:
            server.runs[connections].append(result)
        cells.append(f"{result[0]:,.0f} ({result[1]:5.2f})")
    say_row(title, f"{connections} conns", cells)


def say_row(title, connections, cells):
    say(f"  {title:12} {connections:>9}" + "".join(f"{cell:>18}" for cell in cells))


def run(build, seconds, scratch):
    folder = scratch / "files"
    folder.mkdir()
    make_files(folder)
    cpus = sorted(os.sched_getaffinity(0))
    client = {cpus[min(1, len(cpus) - 1)]}
    servers = start_servers(build, str(folder), cpus)
    try:
        for server in servers:
            check_contents(server, folder, scratch)
        say(f"{len(FILES)} files come back byte for byte from all "
            f"{len(servers)} servers.")
        nr_runs = (ROUNDS + 1) * len(CONNECTIONS) * len(servers)
        say(f"Measuring for about {nr_runs * seconds:.0f} s; "
            "requests/s (CPU us of each):")
        say_row("", "", [server.name for server in servers])
        for number in range(ROUNDS + 1):
            for connections in CONNECTIONS:
                play_round(number, connections, servers, seconds, client)
        for server in servers:
            check_contents(server, folder, scratch)
        print_table(servers)
        complaints = [f"{server.name}, {complaint}"
                      for server in servers for complaint in server.complaints]
        if complaints:
            raise Failure("wrk saw errors:\n  " + "\n  ".join(complaints))
    finally:
        for server in servers:
            server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="build directory")
    parser.add_argument("--seconds", type=int, default=1, help="length of one run")
    args = parser.parse_args()
    for tool in ("wrk", "curl"):
        if not shutil.which(tool):
            print(f"demo-files.py: {tool} is missing: scripts/setup.sh demo", file=sys.stderr)
            return 1
    started = time.monotonic()
    with open(LOCK, "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("Waiting for another measurement on this machine to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="flexsc-demo-files-"))
        try:
            run(args.build, args.seconds, scratch)
        except Failure as failure:
            print(f"demo-files.py: {failure}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    say(f"Took {time.monotonic() - started:.0f} s on Linux {os.uname().release}, "
        f"{os.cpu_count()} processors.")
    command = os.path.join(args.build, "cli", "flexsc")
    say(f"\nNext: {command} doctor        what works here, and what it costs\n"
        f"      {command} bench --list  measure single calls and more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
