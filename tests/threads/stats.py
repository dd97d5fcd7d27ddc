#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `flexsc run --stats` writes: JSON whose figures are of this run.

    tests/threads/stats.py FLEXSC LIVES ALTERNATE

ALTERNATE has threads with an alternate signal stack, which run on carriers too.
"""

import json
import subprocess
import sys
import tempfile


def stats_of(flexsc, program):
    with tempfile.NamedTemporaryFile("r") as out:
        subprocess.run([flexsc, "run", "--cores", "2", "--stats", out.name, "--", program],
                       check=True, stdout=subprocess.DEVNULL, timeout=60)
        lines = out.read().splitlines()
    return [json.loads(line) for line in lines]


def alternate(stats):
    """Its crowd alone takes 1200 faults; those at home are not counted."""
    assert stats["homes"]["signal"] > 1000, stats["homes"]


def main():
    flexsc, program, with_alternate = sys.argv[1:4]
    lines = stats_of(flexsc, program)
    assert len(lines) == 1, lines
    stats = lines[0]
    assert stats["program"] == "threads-lives", stats["program"]
    assert stats["created"] > 4000, stats["created"]
    assert stats["recycled"] + stats["ended"] > 3000, stats
    assert len(stats["queues"]) == 2
    assert sum(queue["parks"] for queue in stats["queues"]) > 1000
    assert stats["carriers"]["now"] >= 2
    first = [thread for thread in stats["threads"] if thread.get("stays") == "first thread"]
    assert len(first) == 1 and first[0]["at_home"], first
    alternate(stats_of(flexsc, with_alternate)[-1])
    print("as it should be")


if __name__ == "__main__":
    main()
