#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Draws the JSON lines of `flexsc bench` on standard input.

    flexsc bench call --json | plot.py FILE.svg
    plot.py --check FILE.svg        can that be done? exit status 0 or 1

The end of the file's name says what it becomes: svg, png, pdf. One field for
each metric and kind of case; where the cases differ in a number, lines over
that number, else bars. Thin strokes reach from the smallest to the largest run, or
out of the field. FlexSC's engines are coloured, rivals are grey.
"""

import json
import os
import re
import sys

try:
    import matplotlib
    matplotlib.use("agg")
    from matplotlib import pyplot, ticker
except ImportError:
    sys.exit("flexsc: drawing needs matplotlib for /usr/bin/python3; "
             "on Debian: apt install python3-matplotlib")

# What the number in a case means: (pattern, name of the axis).
AXES = {
    "call": (r"(?P<kind>.+)/(?P<x>\d+)", "calls in a batch"),
    "pipeline": (r"work (?P<x>[\d.]+) us(?P<kind>)", "user work for each request, us"),
    "server": (r"(?P<kind>.+)/(?P<x>\d+)", "connections"),
    "servers": (r"(?P<kind>.+)/(?P<x>\d+)", "connections"),
    "threads": (r"(?P<kind>.+)/(?P<x>\d+)", "connections"),
    "pollution": (r"(?P<kind>.+)/(?P<x>\d+)", "instructions between two calls"),
    "wsc": (r"(?P<kind>getpid)/(?P<x>\d+)", "calls carried out at once"),
}
TITLES = {"demo": "make demo", "compare": "flexsc compare"}  # not of `flexsc bench`
ENGINES = {"uthread": "#0072b2", "poll": "#d55e00", "uring": "#009e73",
           "sync": "#cc79a7", "auto": "#e69f00", "hybrid": "#e69f00",
           "FlexSC": "#d55e00"}
GREYS = ("#606060", "#202020", "#8c8c8c", "#b0b0b0")
DASHES = ("--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))
NO_ENGINE = "none"  # plain calls on both sides
COLUMNS = 2
MANY_BARS = 12
LINES_HEIGHT = 2.9  # inches
HEAD = 1.1  # inches
LOG_FROM = 15  # largest by smallest value
LOG_FROM_X = 8
ROOM = 1.5  # for strokes beyond the largest value


class Point:
    """One contestant in one case."""

    def __init__(self, name, x, value, low, high):
        self.name, self.x, self.value = name, x, value
        self.low = value if low is None else low
        self.high = value if high is None else high


class Field:
    """One part of the picture: a metric of one kind of case."""

    def __init__(self, title, unit, axis):
        self.title, self.unit, self.axis = title, unit, axis
        self.points = {}  # (name, x): Point
        self.wide = False

    def add(self, name, x, value, low, high):
        if value is not None:
            self.points.setdefault((name, x), Point(name, x, value, low, high))

    def names(self):
        """FlexSC's engines first."""
        found = dict.fromkeys(point.name for point in self.points.values())
        return sorted(found, key=lambda name: name not in ENGINES)

    def of(self, name):
        return [point for point in self.points.values() if point.name == name]


def read_rows(lines):
    """(facts of the machine, rows)"""
    objects = [json.loads(line) for line in lines if line.strip()]
    return objects[0] if objects else {}, [o for o in objects if "metric" in o]


def fields_of(rows):
    """Fields of one metric side by side, else in the order of their rows."""
    found = {}
    for row in rows:
        pattern, axis = AXES.get(row["bench"], ("(?!)", None))
        match = re.fullmatch(pattern, row["case"])
        if match:
            kind, x = match["kind"], float(match["x"])
        else:
            kind, x, axis = "", row["case"], None
        key = (row["metric"], row["unit"], kind, bool(match))
        title = f"{kind}: {row['metric']}" if kind else row["metric"]
        field = found.setdefault(key, Field(title, row["unit"], axis))
        field.add(row["engine"], x, row["value"], row.get("low"), row.get("high"))
        if row["rival"]:
            field.add(row["rival"], x, row["rival_value"], row.get("rival_low"),
                      row.get("rival_high"))
    metrics = list(dict.fromkeys(key[:2] for key in found))
    return [found[key] for key in sorted(found, key=lambda key: metrics.index(key[:2]))
            if found[key].points]


class Looks:
    """One look for one name, in every field."""

    def __init__(self, fields):
        names = dict.fromkeys(name for field in fields for name in field.names())
        self.rivals = [name for name in names if name not in ENGINES]
        self.names = sorted(names, key=lambda name: name not in ENGINES)

    def colour(self, name):
        if name in ENGINES:
            return ENGINES[name]
        return GREYS[self.rivals.index(name) % len(GREYS)]

    def line(self, name):
        if name == "auto":  # lies on the line of the engine it took
            return {"color": ENGINES[name], "marker": "o", "linestyle": (0, (2, 2))}
        if name in ENGINES:
            return {"color": ENGINES[name], "marker": "o"}
        return {"color": self.colour(name), "marker": "s",
                "linestyle": DASHES[self.rivals.index(name) % len(DASHES)]}


def number(value):
    """Short, for a label: 12.3k, 1.50, 171."""
    if abs(value) >= 10000:
        return f"{value / 1000:,.0f}k"
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def reach(points):
    """Strokes from the smallest to the largest run."""
    return [[max(point.value - point.low, 0) for point in points],
            [max(point.high - point.value, 0) for point in points]]


def top_of(points):
    """One disturbed run must not press all others to the ground."""
    return min(max(point.high for point in points),
               ROOM * max(point.value for point in points))


def choose_scale(axes, points, unit):
    values = [point.value for point in points]
    least, most, top = min(values), max(values), top_of(points)
    if least > 0 and most > LOG_FROM * least:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda y, _: f"{y:,g}"))
    elif unit == "times" and least > 0.5 * most:
        # A slowdown of 1.0 to 1.7: zero would hide it, no margin blow up noise.
        margin = max(0.05 * most, 0.05 * (top - least))
        axes.set_ylim(min(point.low for point in points) - margin, top + margin)
    else:
        axes.set_ylim(0, 1.05 * top)
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda y, _: f"{y:,g}"))


def draw_lines(axes, field, looks):
    for name in field.names():
        points = sorted(field.of(name), key=lambda point: point.x)
        axes.errorbar([point.x for point in points], [point.value for point in points],
                      yerr=reach(points), markersize=3, linewidth=1.2, elinewidth=0.6,
                      capsize=1.5, **looks.line(name))
    places = sorted({point.x for point in field.points.values()})
    if places[0] > 0 and places[-1] > LOG_FROM_X * places[0]:
        axes.set_xscale("log")
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.minorticks_off()
    axes.set_xlabel(field.axis, fontsize=8)
    axes.grid(alpha=0.3)


def draw_bars(axes, field, looks):
    """Bars lie, so that long names of cases can be read."""
    points = list(field.points.values())
    cases = list(dict.fromkeys(point.x for point in points))
    points.sort(key=lambda point: (cases.index(point.x), looks.names.index(point.name)))
    top = top_of(points)
    ends, places, place = {}, [], 0.0
    for case in cases:
        here = [point for point in points if point.x == case]
        ends[case] = place + (len(here) - 1) / 2
        for point in here:
            places.append(place)
            place += 1
        place += 0.8
    axes.barh(places, [point.value for point in points], height=0.8,
              xerr=reach(points), error_kw={"elinewidth": 0.8, "ecolor": "#303030"},
              color=[looks.colour(point.name) for point in points])
    for place, point in zip(places, points):
        rival = point.name not in ENGINES and point.name != NO_ENGINE
        axes.text(min(point.high, top) + 0.01 * top, place, number(point.value) +
                  (f"  {point.name}" if rival else ""), fontsize=6, va="center",
                  backgroundcolor="white", bbox={"pad": 0.5, "lw": 0, "fc": "white"})
    axes.set_yticks(list(ends.values()), list(ends), fontsize=7)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.25 * top)
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{x:,g}"))
    axes.grid(alpha=0.3, axis="x")


def draw(axes, field, looks):
    axes.set_title(field.title, fontsize=9)
    axes.tick_params(labelsize=7)
    if field.axis:
        draw_lines(axes, field, looks)
        choose_scale(axes, list(field.points.values()), field.unit)
        axes.set_ylabel(field.unit, fontsize=8)
    else:
        draw_bars(axes, field, looks)
        axes.set_xlabel(field.unit, fontsize=8)


def groups_of(fields):
    """Rows of fields; many bars need a row of their own."""
    groups = []
    for field in fields:
        wide = not field.axis and len(field.points) > MANY_BARS
        if groups and not wide and len(groups[-1]) < COLUMNS and not groups[-1][0].wide:
            groups[-1].append(field)
        else:
            groups.append([field])
        field.wide = wide
    return groups


def height_of(field, nr_fields):
    if field.axis:
        return LINES_HEIGHT * (1.4 if nr_fields == 1 else 1)
    cases = {point.x for point in field.points.values()}
    return 0.9 + 0.13 * len(field.points) + 0.1 * len(cases)


def legend(figure, looks, fields):
    """Rivals of bars are named beside them."""
    shown = [name for name in looks.names if name in ENGINES or
             any(field.axis and name in field.names() for field in fields)]
    handles = [pyplot.Line2D([], [], linewidth=1.2, markersize=4, label=name,
                             **looks.line(name)) for name in shown]
    if not handles:
        return
    figure.legend(handles=handles, loc="upper center", ncol=min(len(handles), 9),
                  bbox_to_anchor=(0.5, 1 - 0.75 / figure.get_figheight()),
                  fontsize=8, frameon=False)


def heading(figure, facts, rows):
    height = figure.get_figheight()
    bench = rows[0]["bench"]
    figure.text(0.5, 1 - 0.22 / height,
                TITLES.get(bench, f"flexsc bench {bench}"),
                ha="center", va="center", fontsize=12, fontweight="bold")
    runs = min([row["runs"] for row in rows if row["runs"] > 1], default=1)
    what = ("--quick: the figures mean nothing" if facts.get("quick") else
            f"medians of {runs} runs in turns, strokes from the smallest to the largest")
    figure.text(0.5, 1 - 0.56 / height,
                f"{facts.get('cpu', '')}, {facts.get('cpus', '?')} CPUs, "
                f"Linux {facts.get('kernel', '')}\n{what}\n"
                "coloured: FlexSC's engines; grey: rivals",
                ha="center", va="center", fontsize=8)


def picture(facts, rows):
    fields = fields_of(rows)
    looks = Looks(fields)
    groups = groups_of(fields)
    columns = max(len(group) for group in groups)
    heights = [max(height_of(field, len(fields)) for field in group) for group in groups]
    total = sum(heights) + HEAD
    figure = pyplot.figure(figsize=(max(5.2 * columns, 8.5), total))
    grid = figure.add_gridspec(len(groups), columns, height_ratios=heights)
    for row, group in enumerate(groups):
        for column, field in enumerate(group):
            # Bars that are alone need the room for the names of their cases.
            alone = len(group) < columns and not field.axis
            place = grid[row, :] if alone else grid[row, column]
            draw(figure.add_subplot(place), field, looks)
    heading(figure, facts, rows)
    legend(figure, looks, fields)
    figure.tight_layout(rect=(0, 0, 1, 1 - HEAD / total))
    return figure


def check(name):
    """Said before minutes of measuring, not after."""
    kinds = pyplot.gcf().canvas.get_supported_filetypes()
    kind = os.path.splitext(name)[1][1:].lower()
    if kind not in kinds:
        sys.exit(f"flexsc: {name}: pictures can be " + ", ".join(sorted(kinds)))
    folder = os.path.dirname(name) or "."
    if not os.access(name if os.path.exists(name) else folder, os.W_OK):
        sys.exit(f"flexsc: {name} cannot be written")


def main():
    args = sys.argv[1:]
    if args[:1] == ["--check"] and len(args) == 2:
        check(args[1])
        return
    if len(args) != 1 or args[0].startswith("-"):
        sys.exit(__doc__)
    facts, rows = read_rows(sys.stdin)
    if not rows:
        sys.exit("flexsc: no results to draw")
    picture(facts, rows).savefig(args[0])


if __name__ == "__main__":
    main()
