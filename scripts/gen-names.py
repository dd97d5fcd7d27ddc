#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns src/preload/names.txt into what the build needs of it.

    scripts/gen-names.py NAMES --map FILE    version script: what is exported
    scripts/gen-names.py NAMES --inc FILE    NAME(x) lines for the assembler
    scripts/gen-names.py NAMES --wrap        linker options, one a line
"""

import argparse
import pathlib
import re

# Beside those of the C library: for debuggers, see <flexsc/observe.h>.
OWN = ("flexsc_process",)


def read_names(path):
    names = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        name = line.split("#")[0].strip()
        if not name:
            continue
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or name in names:
            raise SystemExit(f"{path}:{number}: bad or double name '{name}'")
        names.append(name)
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", type=pathlib.Path)
    parser.add_argument("--map", type=pathlib.Path)
    parser.add_argument("--inc", type=pathlib.Path)
    parser.add_argument("--wrap", action="store_true")
    args = parser.parse_args()
    names = read_names(args.names)
    if args.map:
        # Without a version: one of ours would not match GLIBC_2.x.
        args.map.write_text("{\nglobal:\n" +
                            "".join(f"\t{n};\n" for n in [*names, *OWN]) +
                            "local:\n\t*;\n};\n")
    if args.inc:
        args.inc.write_text("".join(f"NAME {n}\n" for n in names))
    if args.wrap:
        print("\n".join(f"-Wl,--wrap={n}" for n in names))


if __name__ == "__main__":
    main()
