# SPDX-License-Identifier: MIT
"""Clients that drive the servers, and what they say, as numbers."""

import os
import re
import subprocess

from . import process

UNITS_MS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60000, "h": 3600000}
PERCENTILES = re.compile(r"^\s*(50|99)%\s+([\d.]+)(\w+)", re.MULTILINE)


class Load:
    """Requests a second, how many in all, latencies in ms, complaints."""

    def __init__(self, rate, requests, p50=None, p99=None, errors=()):
        self.rate, self.requests = rate, requests
        self.p50, self.p99, self.errors = p50, p99, list(errors)


def run(command, cpus, seconds, during=None):
    """Its output; @during(): called while it runs, near the end."""
    cpus = cpus or os.sched_getaffinity(0)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, stdin=subprocess.DEVNULL, errors="replace",
                          preexec_fn=lambda: process.prepare(cpus)) as client:
        try:
            if during:
                try:
                    client.wait(0.8 * seconds)
                except subprocess.TimeoutExpired:
                    during()
            text, _ = client.communicate(timeout=seconds + 60)
        except subprocess.TimeoutExpired:
            client.kill()
            text, _ = client.communicate()
            raise process.Failure(f"{command[0]} does not end: {text[-300:]}") from None
        except BaseException:
            client.kill()
            raise
    return text


def number(pattern, text, tool):
    found = re.search(pattern, text, re.MULTILINE)
    if not found:
        raise process.Failure(f"{tool} says: {text.strip()[-500:]}")
    return float(found.group(1))


def wrk(url, connections, seconds, cpus=None, during=None, close=False, more=()):
    more = [*more, *(["-H", "Connection: close"] if close else [])]
    text = run([process.find("wrk"), "-t1", f"-c{connections}", f"-d{seconds}s",
                "--latency", "--timeout", "10s", *more, url], cpus, seconds, during)
    latency = {which: float(value) * UNITS_MS[unit]
               for which, value, unit in PERCENTILES.findall(text)}
    return Load(number(r"Requests/sec:\s*([\d.]+)", text, "wrk"),
                int(number(r"(\d+) requests in", text, "wrk")),
                latency.get("50"), latency.get("99"),
                re.findall(r"(?:Non-2xx|Socket errors).*", text))


def sysbench_command(socket, tables, rows):
    return [f"--mysql-socket={socket}", "--mysql-user=root", "--mysql-db=sbtest",
            f"--tables={tables}", f"--table-size={rows}", "--db-driver=mysql"]


def sysbench_prepare(socket, tables, rows):
    done = subprocess.run([process.find("sysbench"), "oltp_read_write",
                           *sysbench_command(socket, tables, rows), "prepare"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise process.Failure(f"sysbench prepare: {(done.stdout + done.stderr)[-500:]}")


def middle_of(histogram):
    """The median of what --histogram prints, in ms."""
    rows = [(float(value), int(count)) for value, count in
            re.findall(r"^\s*([\d.]+)\s*\|\**\s*(\d+)$", histogram, re.MULTILINE)]
    half, seen = sum(count for _, count in rows) / 2, 0
    for value, count in rows:
        seen += count
        if seen >= half:
            return value
    return None


def sysbench(socket, script, connections, seconds, rows, cpus=None, during=None,
             rate=0, tables=1):
    """Requests are queries: a transaction of oltp_read_only has 16 of them."""
    text = run([process.find("sysbench"), f"oltp_{script}",
                *sysbench_command(socket, tables, rows), f"--threads={connections}",
                f"--time={seconds}", "--percentile=99", "--histogram=on",
                f"--rate={rate}", "--db-ps-mode=auto", "run"], cpus, seconds, during)
    errors = re.findall(r"FATAL:.*", text)
    ignored = int(number(r"ignored errors:\s+(\d+)", text, "sysbench"))
    if ignored and script != "read_write":  # there: deadlocks, which are its own
        errors.append(f"{ignored} ignored errors")
    queries = int(number(r"queries:\s+(\d+)", text, "sysbench"))
    return Load(number(r"queries:\s+\d+\s+\(([\d.]+) per sec", text, "sysbench"), queries,
                middle_of(text), number(r"99th percentile:\s+([\d.]+)", text, "sysbench"),
                errors)


def dnsperf(port, names, seconds, cpus=None, tcp=False, clients=20, rate=0, during=None):
    """@names: a file of queries."""
    text = run([process.find("dnsperf"), "-s", "127.0.0.1", "-p", str(port), "-d", names,
                "-l", str(seconds), "-c", str(clients), "-q", "100",
                *(["-m", "tcp"] if tcp else []), *(["-Q", str(rate)] if rate else [])],
               cpus, seconds, during)
    lost = int(number(r"Queries lost:\s+(\d+)", text, "dnsperf"))
    codes = re.search(r"Response codes:\s+(.*)", text)
    errors = [f"{lost} queries lost"] if lost else []
    if not codes or "NOERROR" not in codes.group(1) or "," in codes.group(1):
        errors.append(f"response codes {codes.group(1) if codes else 'none'}")
    return Load(number(r"Queries per second:\s+([\d.]+)", text, "dnsperf"),
                int(number(r"Queries completed:\s+(\d+)", text, "dnsperf")),
                number(r"Average Latency \(s\):\s+([\d.]+)", text, "dnsperf") * 1000, None,
                errors)


def redis_benchmark(port, connections, requests, cpus=None, pipeline=16):
    text = run([process.find("redis-benchmark"), "-p", str(port), "-c", str(connections),
                "-n", str(requests), "-P", str(pipeline), "-t", "set,get", "--csv"], cpus, 60)
    rows = re.findall(r'^"(SET|GET)","([\d.]+)"', text, re.MULTILINE)
    if len(rows) != 2:
        raise process.Failure(f"redis-benchmark says: {text[-500:]}")
    return Load(min(float(rate) for _, rate in rows), 2 * requests)


def paced(flexsc, port, path, connections, rate, seconds, cpus=None, during=None):
    """HTTP requests at a rate that does not depend on the answers."""
    text = run([flexsc, "bench", "--workload", "client", str(port), str(connections),
                str(rate), str(seconds), path], cpus, seconds, during)
    return Load(number(r"^rate ([\d.]+)", text, "the client"),
                int(number(r"^requests (\d+)", text, "the client")),
                number(r"^p50_us ([\d.]+)", text, "the client") / 1000,
                number(r"^p99_us ([\d.]+)", text, "the client") / 1000)
