#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""flexsc compare: what it understands, what it concludes, and a server or two.

    tests/check-compare.py FLEXSC
"""

import json
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
# pylint: disable=wrong-import-position
from servers import compare, formats, process

FLEXSC = sys.argv[1]

# In the form of each tool, cut to the lines that count.
SAID = {
    "wrk": ("""  Latency Distribution
     50%  812.00us
     99%    1.93ms
  152340 requests in 2.00s, 20.34MB read
  Non-2xx or 3xx responses: 7
Requests/sec:  76170.00
""", "request", 152340, 76170, {50: 0.812, 99: 1.93}, 1),
    "ab": ("""Complete requests:      10000
Failed requests:        0
Requests per second:    7481.10 [#/sec] (mean)
  50%      6
  99%     12
 100%     30 (longest request)
""", "request", 10000, 7481.1, {50: 6, 99: 12, 100: 30}, 0),
    "hey": ("""  Requests/sec:	9502.1
  50% in 0.0049 secs
  99% in 0.0110 secs
  [200]	9000 responses
  [503]	500 responses
""", "request", 9500, 9502.1, {50: 4.9, 99: 11}, 1),
    "sysbench": ("""    queries performed:
        read:                            140000
    transactions:                        10000  (1000.00 per sec.)
    queries:                             160000 (16000.00 per sec.)
    total time:                          10.0000s
    total number of events:              10000
         95th percentile:                       12.30
""", "query", 160000, 16000, {95: 12.3}, 0),
    "memtier_benchmark": ("""[RUN #1 100%,  10 secs]  0 threads:      500000 ops,   50000 (avg:   50000) ops/sec
Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency     p99 Latency   p99.9 Latency       KB/sec
Totals      50000.00         0.00     45000.00         0.80000         0.70000         2.10000         4.30000      2100.00
""", "operation", 500000, 50000, {50: 0.7, 99: 2.1, 99.9: 4.3}, 0),
    "pgbench": ("""number of transactions actually processed: 12000/12000
latency average = 1.2 ms
tps = 4000.5 (without initial connection time)
""", "transaction", 12000, 4000.5, {}, 0),
}


def run(*arguments):
    return subprocess.run([FLEXSC, "compare", *map(str, arguments)], check=False, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=300)


class Formats(unittest.TestCase):
    def test_tools(self):
        for tool, (text, unit, count, rate, latencies, errors) in SAID.items():
            with self.subTest(tool):
                found = formats.read(text)
                self.assertEqual((found.tool, found.unit, found.count, len(found.errors)),
                                 (tool, unit, count, errors))
                self.assertAlmostEqual(found.rate, rate)
                self.assertEqual(found.latencies.keys(), latencies.keys())
                for which, value in latencies.items():
                    self.assertAlmostEqual(found.latencies[which], value)

    def test_others(self):
        for text in ("", "Requests/sec: 12", "100 requests in an hour"):
            self.assertIsNone(formats.read(text))


class Verdicts(unittest.TestCase):
    def test_bounds(self):
        """Five values bound their median by the outermost, eight without these."""
        self.assertIsNone(compare.sure_bounds([1, 2, 3, 4]))
        self.assertEqual(compare.sure_bounds([5, 1, 3, 2, 4]), (1, 5))
        self.assertEqual(compare.sure_bounds([8, 1, 2, 3, 4, 5, 6, 7]), (2, 7))

    def test_sentences(self):
        words = ("less", "more")
        sure = [(10, 7), (10, 7.2), (10, 6.8), (10, 7), (10, 7.1)]
        self.assertIn("30 % less", compare.verdict("time", sure, words))
        noisy = sure[:4] + [(10, 11)]
        self.assertIn("no difference that this noise", compare.verdict("time", noisy, words))
        self.assertIn("five turns are needed", compare.verdict("time", sure[:2], words))
        same = [(10, 10)] * 5
        self.assertIn("no difference", compare.verdict("time", same, words))
        self.assertIsNone(compare.verdict("time", [(0, 0)], words))


class Servers(unittest.TestCase):
    def setUp(self):
        self.port = process.free_port()
        self.server = ["--", sys.executable, "-m", "http.server", "-b", "127.0.0.1", self.port]
        self.url = f"http://127.0.0.1:{self.port}/"

    def test_wrk(self):
        """A row for each figure, each beside its rival, and verdicts."""
        done = run("--json", "--runs=2", "--ready", self.port,
                   "--load", f"wrk --latency -t1 -c4 -d1 {self.url}", *self.server)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        rows = {line["metric"]: line for line in lines if "metric" in line}
        for metric in ("CPU", "throughput", "memory", "context switches", "p99 latency"):
            self.assertEqual((rows[metric]["engine"], rows[metric]["rival"],
                              rows[metric]["runs"]), ("FlexSC", "NPTL", 2), metric)
        verdicts = [line["verdict"] for line in lines if "verdict" in line]
        self.assertTrue(all("five turns" in verdict for verdict in verdicts), verdicts)
        self.assertEqual(len(verdicts), 3)

    def test_any_load(self):
        """A load that is not known is measured by its runs."""
        done = run("--runs=1", "--ready-cmd", f"curl -sf {self.url}",
                   "--load", f"curl -s {self.url} {self.url}", *self.server)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("s/run", done.stdout)
        self.assertIsNone(re.search(r"^.{81}", done.stdout, re.MULTILINE), done.stdout)

    def test_failures(self):
        """Each says what failed."""
        for wrong, arguments in (
                ("status 3", ["--load", "exit 3", "--ready", self.port, *self.server]),
                ("ended with status", ["--load", "true", "--ready", self.port, "--", "false"]),
                ("took more than 1 s", ["--load", "true", "--ready", self.port, "--wait=1",
                                        "--", "sleep", "100"])):
            done = run("--runs=1", *arguments)
            self.assertEqual(done.returncode, 1, wrong)
            self.assertIn(wrong, " ".join(done.stdout.split()))

    def test_usage(self):
        for arguments in ([], ["--load=x"], ["--", "true"], ["--ready=0", "--load=x", "true"],
                          ["--ready=1", "--ready-cmd=x", "--load=x", "true"]):
            self.assertEqual(run(*arguments).returncode, 64, arguments)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
