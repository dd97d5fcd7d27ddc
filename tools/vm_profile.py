# SPDX-License-Identifier: MIT
"""Where instructions were executed: the names for tools/vm-profile.c's counts."""

import bisect
import hashlib
import pathlib
import re
import tempfile

from source_package import Unavailable, run

SOURCE = pathlib.Path(__file__).resolve().parent / "vm-profile.c"
ROWS = 60
SYMBOL = re.compile(r"^([0-9a-f]{16}) [tTwW] (\S+)(?:\s+\[(\S+)\])?$", re.MULTILINE)
MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) r-xp ([0-9a-f]+) \S+ \d+ +(\S+)$", re.MULTILINE)


def plugin(folder):
    """The plugin, compiled if need be."""
    made = folder / f"vm-profile-{hashlib.sha1(SOURCE.read_bytes()).hexdigest()[:12]}.so"
    if not made.exists():
        version = re.search(r"version (\d+)", run(["qemu-system-x86_64", "--version"]).stdout)
        if not version or int(version.group(1)) > 8:
            raise Unavailable("this QEMU has another interface for plugins (7.2 has what "
                              "--profile needs)")
        with tempfile.TemporaryDirectory(dir=folder) as place:
            half = pathlib.Path(place) / "plugin.so"
            done = run(["cc", "-shared", "-fPIC", "-O2", "-w", "-o", half, SOURCE])
            if done.returncode:
                raise Unavailable(f"{SOURCE.name} cannot be compiled: {done.stderr.strip()}")
            half.rename(made)
    return made


def symbols_of(path, start, offset):
    """[(address, name)] of a file that is mapped from its @offset on at @start."""
    headers = run(["readelf", "-lW", path]).stdout
    base = None
    for found in re.finditer(r"LOAD +0x([0-9a-f]+) 0x([0-9a-f]+) ", headers):
        file_offset, address = (int(text, 16) for text in found.groups())
        if file_offset & ~4095 == offset:
            base = start - (address & ~4095)
    if base is None:
        return []
    text = run(["nm", "--defined-only", path]).stdout or \
        run(["nm", "-D", "--defined-only", path]).stdout
    return [(base + int(at, 16), name) for at, _, name in
            (line.split() for line in text.splitlines() if len(line.split()) == 3)]


class Names:
    """From addresses to functions."""

    def __init__(self, told):
        places = [(int(at, 16), f"{name} [{module}]" if module else name)
                  for at, name, module in SYMBOL.findall(told)]
        for start, end, offset, path in MAPPING.findall(told):
            start, end, name = int(start, 16), int(end, 16), pathlib.Path(path).name
            places.append((start, f"({name})"))
            places += [(at, f"{symbol} ({name})")
                       for at, symbol in symbols_of(path, start, int(offset, 16))
                       if start <= at < end]
            places.append((end, "?"))
        self.places = sorted(places)
        self.starts = [at for at, _ in self.places]

    def of(self, address):
        i = bisect.bisect_right(self.starts, address) - 1
        return self.places[i][1] if i >= 0 else "?"


def report(counts, told):
    """The table; @told: kallsyms and maps, as the machine's first program sent them."""
    lines = counts.splitlines()
    regions = int(lines[0].split()[1]) if lines else 0
    if not regions:
        return "profile: no mark was passed"
    names, sums = Names(told), {}
    for line in lines[1:]:
        address, count = line.split()
        name = names.of(int(address, 16))
        sums[name] = sums.get(name, 0) + int(count)
    rows = sorted(sums.items(), key=lambda row: -row[1])
    head = [f"profile: {sum(sums.values()) / regions:.1f} instructions between two marks, "
            f"mean of {regions}"]
    return "\n".join(head + [f"{count / regions:10.1f} {name}" for name, count in rows[:ROWS]])
