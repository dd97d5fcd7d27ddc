# SPDX-License-Identifier: MIT
"""What load generators print, as numbers.

read(text) knows wrk, ab, hey, sysbench, memtier_benchmark and pgbench by what
they say. A percentile is there only if the tool was asked for it (wrk --latency).
"""

import re

UNITS_MS = {"us": 0.001, "ms": 1, "s": 1000, "secs": 1000, "m": 60000, "h": 3600000}


class Found:
    """Of one run: units of work, how many a second, {percentile: ms}, complaints."""

    def __init__(self, tool, unit, count, rate):
        self.tool, self.unit, self.count, self.rate = tool, unit, count, rate
        self.latencies, self.errors = {}, []


def number(pattern, text):
    """The last one: tools also print what they have so far."""
    found = re.findall(pattern, text, re.MULTILINE)
    return float(found[-1]) if found else None


def percentiles(pattern, text, scale=lambda unit: 1):
    return {float(which): float(value) * scale(unit)
            for which, value, unit in re.findall(pattern, text, re.MULTILINE)}


def wrk(text):
    count, rate = number(r"(\d+) requests in", text), number(r"Requests/sec:\s*([\d.]+)", text)
    if count is None or rate is None:
        return None
    found = Found("wrk", "request", count, rate)
    found.latencies = percentiles(r"^\s*([\d.]+)%\s+([\d.]+)(us|ms|s|m|h)$", text, UNITS_MS.get)
    found.errors = re.findall(r"(?:Non-2xx|Socket errors).*", text)
    return found


def ab(text):
    count = number(r"^Complete requests:\s+(\d+)", text)
    rate = number(r"^Requests per second:\s+([\d.]+)", text)
    if count is None or rate is None:
        return None
    found = Found("ab", "request", count, rate)
    found.latencies = percentiles(r"^\s+(\d+)%\s+(\d+)()", text)
    for line in re.findall(r"^(?:Failed requests|Non-2xx responses):\s+\d+", text, re.MULTILINE):
        if not line.endswith(" 0"):
            found.errors.append(re.sub(r"\s+", " ", line))
    return found


def hey(text):
    rate = number(r"Requests/sec:\s*([\d.]+)", text)
    answers = re.findall(r"\[(\d+)\]\s+(\d+) responses", text)
    if rate is None or not answers:
        return None
    found = Found("hey", "request", sum(int(nr) for _, nr in answers), rate)
    found.latencies = percentiles(r"^\s*(\d+)%+ in ([\d.]+) (secs)", text, UNITS_MS.get)
    found.errors = [f"{nr} responses of status {status}" for status, nr in answers
                    if not status.startswith("2")]
    return found


def sysbench(text):
    counts = re.findall(r"^\s*(queries|transactions|total number of events):\s+(\d+)", text,
                        re.MULTILINE)
    seconds = number(r"^\s*total time:\s+([\d.]+)s", text)
    if not counts or not seconds:
        return None
    unit, count = counts[-1] if counts[-1][0] != "total number of events" else \
        next((c for c in counts if c[0] == "queries"), counts[-1])
    unit = {"queries": "query", "transactions": "transaction"}.get(unit, "event")
    found = Found("sysbench", unit, float(count), float(count) / seconds)
    found.latencies = percentiles(r"^\s*(\d+)th percentile:\s+([\d.]+)()", text)
    return found


def memtier(text):
    heads = re.search(r"^Type\s+Ops/sec.*$", text, re.MULTILINE)
    totals = re.search(r"^Totals\s+(.*)$", text, re.MULTILINE)
    count = number(r"(\d+) ops,", text)
    if not heads or not totals or count is None:
        return None
    names = re.split(r"\s{2,}", heads.group(0).strip())[1:]
    values = [float(v) if v != "---" else 0 for v in totals.group(1).split()]
    found = Found("memtier_benchmark", "operation", count, values[0])
    for name, value in zip(names, values):
        which = re.fullmatch(r"p([\d.]+) Latency", name)
        if which:
            found.latencies[float(which.group(1))] = value
    return found


def pgbench(text):
    count = number(r"number of transactions actually processed: (\d+)", text)
    rate = number(r"^tps = ([\d.]+) \((?:without|excluding)", text)
    if count is None or rate is None:
        return None
    return Found("pgbench", "transaction", count, rate)


def read(text):
    """A Found, or None: no tool that is known here."""
    for tool in (wrk, ab, hey, sysbench, memtier, pgbench):
        found = tool(text)
        if found and found.count:
            return found
    return None
