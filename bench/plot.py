#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Draws the JSON lines of `flexsc bench` on standard input as an SVG.

    flexsc bench call --json | plot.py FILE.svg

One field per metric; cases from left to right, one line per engine and per
rival.
"""

import json
import sys

try:
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
except ImportError:
    sys.exit("plot.py: needs matplotlib; on Debian: apt install python3-matplotlib")


def read_rows(lines):
    """(facts of the machine, rows)"""
    objects = [json.loads(line) for line in lines if line.strip()]
    return objects[0] if objects else {}, [o for o in objects if "metric" in o]


def curves(rows):
    """{name: {case: value}}, rivals included."""
    found = {}
    for row in rows:
        found.setdefault(row["engine"], {})[row["case"]] = row["value"]
        if row["rival"]:
            found.setdefault(row["rival"], {})[row["case"]] = row["rival_value"]
    return found


def draw(axes, metric, rows):
    cases = list(dict.fromkeys(row["case"] for row in rows))
    for name, values in curves(rows).items():
        here = [index for index, case in enumerate(cases)
                if values.get(case) is not None]
        axes.plot(here, [values[cases[index]] for index in here],
                  marker="o", markersize=3, linewidth=1, label=name)
    values = [row["value"] for row in rows if row["value"]]
    if values and min(values) > 0 and max(values) > 20 * min(values):
        axes.set_yscale("log")
    axes.set_xticks(range(len(cases)), cases, rotation=60, ha="right", fontsize=7)
    axes.set_ylabel(f"{metric} ({rows[0]['unit']})", fontsize=8)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    facts, rows = read_rows(sys.stdin)
    if not rows:
        sys.exit("plot.py: no results on standard input")
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    figure, fields = pyplot.subplots(len(metrics), 1, squeeze=False,
                                     figsize=(9, 4 * len(metrics)))
    for axes, metric in zip(fields[:, 0], metrics):
        draw(axes, metric, [row for row in rows if row["metric"] == metric])
    figure.suptitle(f"flexsc bench {rows[0]['bench']}: {facts.get('cpu', '')}, "
                    f"Linux {facts.get('kernel', '')}", fontsize=9)
    figure.tight_layout()
    figure.savefig(sys.argv[1])


if __name__ == "__main__":
    main()
