#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `flexsc run --stats` writes: JSON whose figures are of this run.

    tests/threads/stats.py FLEXSC PROGRAM
"""

import json
import subprocess
import sys
import tempfile


def main():
    flexsc, program = sys.argv[1:3]
    with tempfile.NamedTemporaryFile("r") as out:
        subprocess.run([flexsc, "run", "--cores", "2", "--stats", out.name, "--", program],
                       check=True, stdout=subprocess.DEVNULL, timeout=60)
        lines = out.read().splitlines()
    assert len(lines) == 1, lines
    stats = json.loads(lines[0])
    assert stats["program"] == "threads-lives", stats["program"]
    assert stats["created"] > 4000, stats["created"]
    assert stats["recycled"] + stats["ended"] > 3000, stats
    assert len(stats["queues"]) == 2
    assert sum(queue["parks"] for queue in stats["queues"]) > 1000
    assert stats["carriers"]["now"] >= 2
    first = [thread for thread in stats["threads"] if thread.get("stays") == "first thread"]
    assert len(first) == 1 and first[0]["at_home"], first
    print("as it should be")


if __name__ == "__main__":
    main()
